/** Puts the changed lines of an edited text into the original, whose other bytes stay as they are. */

export interface Lines {
  /** Without line ends, blanks at the ends of lines, a byte order mark, and empty lines at the end. */
  readonly bare: readonly string[]
  /** What `bare` leaves out behind each line. */
  readonly tails: readonly string[]
  /** What comes before the first line and behind the last. */
  readonly head: string
  readonly end: string
}

export function splitLines(text: string): Lines {
  const head = text.startsWith('\uFEFF') ? '\uFEFF' : ''
  const end = /\s*$/.exec(text.slice(head.length))?.[0] ?? ''
  const body = text.slice(head.length, text.length - end.length)
  const all = body === '' ? [] : body.split(/(?<=\n)/)
  const bare = all.map((line) => line.trimEnd())
  return { head, end, bare, tails: all.map((line, index) => line.slice(bare[index]?.length)) }
}

export interface GraftOptions {
  /** Comments and empty lines above what goes away stay. */
  readonly isRemoval: boolean
  /** A comment behind a changed value stays where it stood. */
  readonly keepsGaps: boolean
}

/** The original with the lines that differ in `edited`: its bare lines, changed in one place. */
export function graftLines(
  { bare, tails, head, end }: Lines,
  edited: readonly string[],
  { isRemoval, keepsGaps }: GraftOptions,
): string {
  const changed = withoutEmptyEnd(edited)
  const start = countSame(bare, changed)
  const most = Math.min(bare.length, changed.length) - start
  const same = Math.min(most, countSame(bare.toReversed(), changed.toReversed()))
  const old = bare.slice(start, bare.length - same)
  const from = start + (isRemoval ? countComments(old) : 0)
  const fresh = changed.slice(start, changed.length - same)
  const kept = (line: string, index: number) => ({ line, tail: tails[index] ?? '' })
  const whole = [
    ...bare.slice(0, from).map(kept),
    ...fresh.map((line, index) => ({
      line: keepsGaps ? keepGap(bare[from + index] ?? '', line) : line,
      tail: index < old.length ? (tails[from + index] ?? '') : '',
    })),
    ...bare.slice(bare.length - same).map((line, index) => kept(line, bare.length - same + index)),
  ]
  const eol = `${tails.join('')}${end}`.includes('\r\n') ? '\r\n' : '\n'
  const text = whole.map(({ line, tail }, index) => {
    if (index === whole.length - 1) return line
    return `${line}${tail.includes('\n') ? tail : eol}`
  })
  return `${head}${text.join('')}${bare.length === 0 && text.length > 0 ? eol : end}`
}

function withoutEmptyEnd(lines: readonly string[]): readonly string[] {
  const last = lines.findLastIndex((line) => line !== '')
  return lines.slice(0, last + 1)
}

/** How many lines two texts share from the beginning. */
function countSame(one: readonly string[], two: readonly string[]): number {
  const index = one.findIndex((line, place) => line !== two[place])
  return index < 0 ? one.length : index
}

/** Lines at the beginning that hold no more than a comment. */
function countComments(lines: readonly string[]): number {
  const index = lines.findIndex((line) => !/^\s*(#|$)/.test(line))
  return index < 0 ? 0 : index
}

const COMMENTED = /^(.*\S)(\s+)(#.*)$/

/** The blanks before a comment that both lines end with, as the old one has them. */
function keepGap(before: string, after: string): string {
  const [, , gap = '', comment] = COMMENTED.exec(before) ?? []
  const [, value = '', , same] = COMMENTED.exec(after) ?? []
  return comment !== undefined && comment === same ? `${value}${gap}${comment}` : after
}
