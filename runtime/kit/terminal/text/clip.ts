/** Clips texts to a number of terminal columns. */
import { displayWidth } from '#kit/foundation/printable.ts'

interface Clip {
  /** What is given up: the middle where both ends tell (paths, names), else the end. */
  readonly cut: 'middle' | 'end'
  readonly unicode: boolean
}

/** The text is printable already; dots show what was cut out. */
export function clip(given: string, width: number, { cut, unicode }: Clip): string {
  const text = unicode ? given : given.replaceAll('…', '...')
  if (displayWidth(text) <= width) return text
  const dots = unicode ? '…' : '..'
  const room = width - dots.length
  if (room <= 0) return take([...text], width)
  if (cut === 'end') return take([...text], room) + dots
  const tail = Math.floor(room / 2)
  return take([...text], room - tail) + dots + takeLast([...text], tail)
}

/** Texts that would then look the same are cut elsewhere, so that they stay different. */
export function clipApart(texts: readonly string[], width: number, style: Clip): readonly string[] {
  const cut = texts.map((text) => clip(text, width, style))
  const groups = Map.groupBy(texts, (_text, at) => cut[at])
  return texts.map((text, at) => {
    const alike = new Set(groups.get(cut[at]))
    return alike.size > 1
      ? clipAround(text, commonLength([...alike]), width, style)
      : (cut[at] ?? '')
  })
}

/** What is shown before the place that matters. */
const LEAD = 4

/** The beginning, then the text from `at` on. */
function clipAround(text: string, at: number, width: number, { unicode }: Clip): string {
  if (displayWidth(text) <= width) return text
  const dots = unicode ? '…' : '..'
  const characters = [...text]
  const head = take(characters, Math.floor(width / 4))
  const room = Math.max(0, width - displayWidth(head) - dots.length)
  const rest = characters.slice(Math.max([...head].length, at - LEAD))
  const shown = `${head}${dots}${clip(rest.join(''), room, { cut: 'end', unicode })}`
  return take([...shown], width)
}

function commonLength(texts: readonly string[]): number {
  const [first = [], ...others] = texts.map((text) => [...text])
  const at = first.findIndex((character, index) =>
    others.some((other) => other[index] !== character),
  )
  return at === -1 ? first.length : at
}

/** Where there is no room for both, the left one stays. */
export function spread(left: string, right: string, width: number, unicode: boolean): string {
  const room = width - displayWidth(right) - 2
  if (right === '' || room < displayWidth(left)) return clip(left, width, { cut: 'end', unicode })
  return `${pad(left, room)}  ${right}`
}

/** `side`: where the blanks go. */
export function pad(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return side === 'right' ? text + blanks : blanks + text
}

function take(characters: readonly string[], width: number): string {
  let used = 0
  const end = characters.findIndex((character) => (used += displayWidth(character)) > width)
  return (end === -1 ? characters : characters.slice(0, end)).join('')
}

const takeLast = (characters: readonly string[], width: number): string =>
  [...take(characters.toReversed(), width)].toReversed().join('')
