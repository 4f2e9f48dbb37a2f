/** Where the headers and `key = value` pairs of a TOML text lie, to the character. */
import { parseToml } from './toml.ts'

export interface Statement {
  readonly kind: 'header' | 'pair'
  /** From the root: `[server]` and `port` in it are `['server', 'port']`. */
  readonly path: readonly string[]
  /** Of the line on which it begins, and just past the line end (or the text's) behind it. */
  readonly start: number
  readonly end: number
  /** Of a pair's value; of a header, its own. */
  readonly valueStart: number
  readonly valueEnd: number
}

/** `text` must be TOML; of anything else the answer means nothing. In the text's order. */
export function listStatements(text: string): readonly Statement[] {
  const statements: Statement[] = []
  let header: readonly string[] = []
  let at = skip(BETWEEN, text, 0)
  while (at < text.length) {
    const statement = text[at] === '[' ? readHeader(text, at) : readPair(text, at, header)
    if (statement.kind === 'header') header = statement.path
    statements.push(statement)
    at = skip(BETWEEN, text, statement.end)
  }
  return statements
}

const BETWEEN = /(?:[\s\uFEFF]|#[^\n]*)*/y
const BLANKS = /[ \t]*/y
const REST_OF_LINE = /[^\n]*\n?/y
const KEY = /[ \t]*("(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^\s"'.=\]]+)[ \t]*/y

/** Just past what the pattern takes at a place. */
function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return at + (pattern.exec(text)?.[0].length ?? 0)
}

function readHeader(text: string, at: number): Statement {
  const open = text.startsWith('[[', at) ? 2 : 1
  const { path, end } = readPath(text, at + open)
  const valueEnd = end + open
  return {
    kind: 'header',
    path,
    start: startOfLine(text, at),
    end: skip(REST_OF_LINE, text, valueEnd),
    valueStart: at,
    valueEnd,
  }
}

function readPair(text: string, at: number, header: readonly string[]): Statement {
  const { path, end } = readPath(text, at)
  const valueStart = skip(BLANKS, text, end + 1)
  const valueEnd = endOfValue(text, valueStart)
  return {
    kind: 'pair',
    path: [...header, ...path],
    start: startOfLine(text, at),
    end: skip(REST_OF_LINE, text, valueEnd),
    valueStart,
    valueEnd,
  }
}

/** A byte order mark belongs to no line. */
const startOfLine = (text: string, at: number) =>
  Math.max(text.lastIndexOf('\n', at - 1) + 1, text.startsWith('\uFEFF') ? 1 : 0)

/** Keys with dots between them. */
function readPath(text: string, at: number): { readonly path: string[]; readonly end: number } {
  const path: string[] = []
  let end = at - 1
  do {
    KEY.lastIndex = end + 1
    const [whole = '', key = ''] = KEY.exec(text) ?? []
    path.push(unquote(key))
    end += 1 + whole.length
  } while (text[end] === '.')
  return { path, end }
}

function unquote(key: string): string {
  if (!/^["']/.test(key)) return key
  const parsed = parseToml(`key = ${key}`)
  return parsed.ok ? String(parsed.value['key']) : key
}

const STRING = /"""(?:[^\\]|\\[^])*?"""{1,3}|'''[^]*?'''{1,3}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'/y
/** Inside brackets: all that is neither a bracket nor a string; comments may hold anything. */
const FILLING = /(?:#[^\n]*|[^[\]{}"'#])+/y
const SCALAR = /[^\n#]*/y

function endOfValue(text: string, start: number): number {
  const string = skip(STRING, text, start)
  if (string > start) return string
  const isBracket = text[start] === '[' || text[start] === '{'
  return isBracket ? endOfBrackets(text, start) : trimmedEnd(text, start, skip(SCALAR, text, start))
}

function endOfBrackets(text: string, start: number): number {
  let [at, depth] = [start, 0]
  do {
    const letter = text[at] ?? ''
    if ('[{'.includes(letter)) depth += 1
    if (']}'.includes(letter)) depth -= 1
    const next = skip(FILLING, text, skip(STRING, text, at))
    at = next > at ? next : at + 1
  } while (depth > 0 && at < text.length)
  return at
}

const trimmedEnd = (text: string, start: number, end: number) =>
  start + text.slice(start, end).trimEnd().length
