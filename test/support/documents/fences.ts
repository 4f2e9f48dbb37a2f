/** The fenced blocks of a page, and what the comment before each of them says about who tries it. */

export interface Fence {
  /** The line of the fence itself, counted from 1. */
  readonly line: number
  readonly language: string
  readonly mark: FenceMark | null
  readonly text: string
}

export type FenceMark =
  /** `<!-- run: test/bin/remote-docs.test.ts -->`: that test runs the block. */
  | { readonly is: 'run'; readonly by: string }
  /** `<!-- by hand: needs QEMU -->`: nobody but a person runs it. */
  | { readonly is: 'by-hand'; readonly because: string }

const FENCE = /^(?: *<!-- ([^\n]+) -->\n\n?)?( *)```(\w*)\n([^]*?)^ *```$/gm

/** Lists the fenced blocks of a page in their order. */
export const listFences = (page: string): readonly Fence[] =>
  [...page.matchAll(FENCE)].map((found) => {
    const [whole, comment = '', , language = '', text = ''] = found
    const before = page.slice(0, found.index + whole.indexOf('```'))
    return { line: before.split('\n').length, language, mark: parseMark(comment), text }
  })

function parseMark(comment: string): FenceMark | null {
  const [, kind, value = ''] = /^(run|by hand): (.+)$/.exec(comment) ?? []
  if (kind === undefined) return null
  return kind === 'run' ? { is: 'run', by: value } : { is: 'by-hand', because: value }
}

/** The same text with a `|` for each line break within a fence: a word there has no neighbour in the next line. */
export const withoutFenceBreaks = (page: string): string =>
  page.replaceAll(FENCE, (whole) => whole.replaceAll('\n', '|'))
