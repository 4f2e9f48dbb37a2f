/** What counts as a figure of a page: each word with a digit in it, a bare number with its unit. */
import { STATUS_CODES } from 'node:http'
import { withoutFenceBreaks } from './fences.ts'
import { isName, isShipped } from './names.ts'

export interface Figure {
  /** `12 seconds`, `0x80`, `127.0.0.1:8080`. */
  readonly phrase: string
  /** The line in which it begins, counted from 1. */
  readonly line: number
}

/** Held as a whole: by records, by test/growth.test.ts, by what `frame-page.ts` works out. */
const MEASURED = /<!-- (measured:[\w-]+|bench:growth-\w+|bytes) -->[^]*?<!-- \/\1 -->/g
const SCREEN = /<!-- screen: [^\n]+ -->[^]*?<!-- end -->/g
/** The offset and the size of a field in the file: so are these. */
const FIELD = /^\| \d+ +\| +\d+ (?=\|)/gm
/** How fast a link is: two names that no wrong digit makes of one another. */
const LINK_SPEED = /\b10? GbE\b/g
/** A status says the same as its name: `409 Conflict`. */
const STATUS = new RegExp(
  Object.entries(STATUS_CODES)
    .map(([code, name = '']) => String.raw`\b${code}(?= \|? ?${name}\b)`)
    .join('|'),
  'g',
)
/** `[decision 38](decisions/0038-…)`: the link says the same number. */
const DECISION = /\[(?:decisions?[ /])?0*(\d+)\]\((?:decisions\/)?0*\1-[^)]*\)/g
const FENCE = /^ *```\w+\n[^]*?^ *```$/gm
const DIFF = /^ *```diff\n[^]*?^ *```$/gm
const COMMENT = /<!--[^]*?-->/g
const LINK = /\]\((?![a-z]+:)[^)\s]*\)/g
const LIST_NUMBER = /^(?: *|#+ |\*\*)\d+\. /gm
const EDGES = /^[^\p{L}\p{N}$/<~]+|[^\p{L}\p{N}%/>]+$/gu

/** What a bare number may count; any other word behind it can be said in another way. */
const UNIT =
  /^(?:[KMGT]i?B|k?B|bytes?|m?s|h|seconds?|minutes?|hours?|days?|months?|%|MHz|MiB\/s|MB\/s|baud|machines?|disks?|files?|runs?|times?|letters?|characters?|levels?|rounds?|rows?|cores?|threads?|frames?|packages?|bits?)$/

const blank = (text: string) => text.replaceAll(/[^\n]/g, ' ')

/** Digests are worked out in the page that has the test vector. */
const withoutDigests = (page: string): string =>
  page.includes('<!-- bytes -->') ? page.replaceAll(/`[0-9a-f]{64}`/g, blank) : page

const withoutShipped = (page: string): string =>
  page.replaceAll(FENCE, (block) =>
    block.replaceAll(/^.*\d.*$/gm, (line) => (isShipped(line) ? blank(line) : line)),
  )

/**
 * Lists the figures of a page, without what other checks hold: blocks that a script records, diffs, targets of
 * links, the numbers of a list.
 */
export function listFigures(page: string): readonly Figure[] {
  const text = [
    MEASURED,
    SCREEN,
    FIELD,
    LINK_SPEED,
    STATUS,
    DECISION,
    DIFF,
    COMMENT,
    LINK,
    LIST_NUMBER,
  ].reduce((rest, pattern) => rest.replaceAll(pattern, blank), withoutShipped(withoutDigests(page)))
  const figures: Figure[] = []
  let line = 1
  let bare: string | null = null
  const end = (more: string) => {
    if (bare === null) return
    figures.push({ phrase: UNIT.test(more) ? `${bare} ${more}` : bare, line })
    bare = null
  }
  // Both have the same length, so lines are counted in the text.
  let at = 0
  for (const part of withoutFenceBreaks(text).split(/(\s+|\|)/)) {
    const from = at
    at += part.length
    const word = part.replaceAll(EDGES, '')
    if (part === '|') end('')
    if (word !== '') end(word)
    line += text.slice(from, at).split('\n').length - 1
    if (word === '') continue
    if (!/\d/.test(word) || isName(word)) continue
    if (/^[\d.,–%-]+$/.test(word)) bare = word
    else figures.push({ phrase: word, line })
  }
  end('')
  return figures
}

/** Whether each numbered list, and each row of headings with numbers, counts up by one from 1. */
export function listWrongNumbers(page: string): readonly string[] {
  const wrong: string[] = []
  const last = new Map<string, number>()
  for (const [at, text] of page.split('\n').entries()) {
    const [, indent = '', number] = /^( *|#+ |\*\*)(\d+)\. /.exec(text) ?? []
    if (text.startsWith('#')) last.delete('')
    if (number === undefined) continue
    const before = last.get(indent) ?? 0
    const isNew = indent.trim() === '' && Number(number) === 1
    if (!isNew && Number(number) !== before + 1) {
      wrong.push(`line ${at + 1}: the list goes from ${before} to ${number}`)
    }
    last.set(indent, Number(number))
  }
  return wrong
}
