/** Parses TOML strictly, reports errors with line and column, and edits a text in place. */
import { parse, TomlDate, TomlError, type TomlTable } from 'smol-toml'
import { printable } from '#kit/foundation/printable.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { parseDocument, patch, stringify, type TomlDocument } from '@decimalturn/toml-patch'
import type { TomlValue } from './setting.ts'

interface TomlProblem {
  /** Lines and columns are counted from 1. */
  readonly line: number
  readonly column: number
  /** One clause. */
  readonly message: string
  /** The lines around it with a mark below the place. */
  readonly frame: string
}

/** This is far beyond any configuration or catalog. */
const MAX_CHARACTERS = 4 * 1024 * 1024

/**
 * TOML 1.0. Tables have no prototype; whole numbers beyond 2^53 are refused. A refusal says what is
 * wrong in which line and column.
 */
export function parseToml(text: string): Result<TomlTable, TomlProblem> {
  if (text.length > MAX_CHARACTERS) {
    return refuse({ line: 1, column: 1, message: 'the text is too long', frame: '' })
  }
  try {
    return accept(parse(text.replace(/^\uFEFF/, '')))
  } catch (thrown) {
    if (thrown instanceof TomlError) return refuse(describeProblem(thrown, text))
    throw thrown
  }
}

function describeProblem(
  { line, column, codeblock, message }: TomlError,
  text: string,
): TomlProblem {
  // The frame is part of the library's message; here it stands by itself.
  const [first = ''] = message.split('\n')
  const clause = first.replace(/^Invalid TOML document: /, '')
  const lines = LONG_SECRET.test(text) ? '' : codeblock.trimEnd()
  const frame = lines.split('\n').map(renderFrameLine).join('\n')
  return { line, column, message: printable(clause), frame }
}

const MAX_FRAME_LINE = 120
/** Values of keys like these are secret, and a frame ends up in logs. */
const SECRET_LINE = /^(.*(?:password|secret|token|credential|key|options|connection)[^=]*=).*$/i
/** One of several lines cannot be separated from what is around it. */
const LONG_SECRET = /(?:password|secret|token|credential|key|options|connection).*(?:"""|''')/i

function renderFrameLine(line: string): string {
  const safe = printable(line.replace(SECRET_LINE, '$1 …'))
  return safe.length > MAX_FRAME_LINE ? `${safe.slice(0, MAX_FRAME_LINE)}…` : safe
}

/** Neither a list nor a date. */
export const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isRecord(value) && !(value instanceof TomlDate)

/** The order of keys aside. */
export function isSameToml(one: unknown, two: unknown): boolean {
  if (one instanceof TomlDate && two instanceof TomlDate)
    return one.toISOString() === two.toISOString()
  if (Array.isArray(one) && Array.isArray(two)) {
    return one.length === two.length && one.every((value, index) => isSameToml(value, two[index]))
  }
  if (!isTable(one) || !isTable(two)) return Object.is(one, two)
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(two).length &&
    keys.every((key) => Object.hasOwn(two, key) && isSameToml(one[key], two[key]))
  )
}

// Sets or removes one key of a TOML text and keeps every other byte (docs/decisions/0014).

interface TomlKey {
  readonly section: string
  readonly key: string
}

export type TomlEditRefusal =
  /** The text is not TOML as it stands. */
  | { readonly why: 'not-toml'; readonly problem: TomlProblem }
  /** The section's name stands for something that is not a table. */
  | { readonly why: 'not-a-section' }
  /** The edited text would not hold exactly what was asked for: nothing may be written. */
  | { readonly why: 'too-unusual' }

type Table = Readonly<Record<string, unknown>>

/**
 * Null removes the key's lines, and comments above stay. A new key goes behind the others of its
 * section, a new section to the end. The text comes back unchanged when it already holds the value.
 */
export function editToml(
  text: string,
  at: TomlKey,
  value: TomlValue | null,
): Result<string, TomlEditRefusal> {
  const before = parseToml(text)
  if (!before.ok) return refuse({ why: 'not-toml', problem: before.refusal })
  const { [at.section]: section = {} } = before.value
  if (!isTable(section)) return refuse({ why: 'not-a-section' })
  const wanted = withKey(section, at.key, value)
  if (isSameToml(wanted, section)) return accept(text)
  const edited = attempt(() => editStatement(text, at, value, wanted))
  const after = parseToml(edited ?? '')
  return edited !== null &&
    after.ok &&
    isSameToml(after.value, { ...before.value, [at.section]: wanted })
    ? accept(edited)
    : refuse({ why: 'too-unusual' })
}

/** From 1; of an inline table, the line of its section. Null when there is neither. */
export function locateTomlKey(text: string, { section, key }: TomlKey): number | null {
  const statements = listStatements(text)
  return (findPair(statements, [section, key]) ?? findPair(statements, [section]))?.line ?? null
}

/** From 1: of `[section]` or of the first of its keys; null when there is neither. */
export const locateTomlSection = (text: string, section: string): number | null =>
  listStatements(text).find(({ path }) => path[0] === section)?.line ?? null

function withKey(section: Table, key: string, value: TomlValue | null): Table {
  const { [key]: _, ...others } = section
  return value === null ? others : { ...section, [key]: value }
}

function editStatement(text: string, at: TomlKey, value: TomlValue | null, wanted: Table): string {
  const statements = listStatements(text)
  const pair = findPair(statements, [at.section, at.key])
  if (pair !== null) {
    return value === null
      ? text.slice(0, pair.start) + text.slice(pair.end)
      : withValue(text, pair, value)
  }
  // `section = { … }`: the whole table is one value.
  const inline = findPair(statements, [at.section])
  if (inline !== null) return withValue(text, inline, wanted)
  return value === null ? text : add(text, statements, at, value)
}

const withValue = (text: string, { valueStart, valueEnd }: Statement, value: unknown) =>
  text.slice(0, valueStart) +
  renderLike(text.slice(valueStart, valueEnd), value) +
  text.slice(valueEnd)

const NAME = 'value = '

/**
 * The new value with the old one's quotes, layout and comments. toml-patch gets the value alone: in a
 * whole text it would also align comments and line ends elsewhere. It damages some lists that have
 * comments and get shorter; these are written anew.
 */
function renderLike(before: string, value: unknown): string {
  const text = `${NAME}${before.replaceAll('\r\n', '\n')}\n`
  const patched = attempt(() => patch(text, { value }).trimEnd()) ?? ''
  const after = parseToml(patched)
  if (!after.ok || !isSameToml(after.value, { value })) return render(value)
  const rendered = patched.slice(NAME.length)
  return before.includes('\r\n') ? rendered.replaceAll('\n', '\r\n') : rendered
}

/** Null: toml-patch threw, because it cannot read that text or write that value. */
function attempt<T>(work: () => T): T | null {
  try {
    return work()
  } catch {
    return null
  }
}

const render = (value: unknown) =>
  stringify({ value }, { inlineTableStart: 0, trailingNewline: 0 }).slice(NAME.length)

/** Behind what stands below the section's header, behind its dotted keys, or at the end. */
function add(
  text: string,
  statements: readonly Statement[],
  { section, key }: TomlKey,
  value: TomlValue,
): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const pair = `${renderKey(key)} = ${render(value)}`
  const { last, isHeaded } = findEnd(statements, section)
  if (last === null) return append(text, `[${renderKey(section)}]${eol}${pair}${eol}`, eol)
  const indent = last.kind === 'pair' ? (/^[ \t]*/.exec(text.slice(last.start))?.[0] ?? '') : ''
  const line = `${indent}${isHeaded ? '' : `${renderKey(section)}.`}${pair}`
  const before = text.slice(0, last.end)
  return before.endsWith('\n')
    ? `${before}${line}${eol}${text.slice(last.end)}`
    : `${before}${eol}${line}`
}

/** With an empty line between. */
function append(text: string, addition: string, eol: string): string {
  if (text.trim() === '' || /\n\r?\n$/.test(text)) return `${text}${addition}`
  return `${text}${text.endsWith('\n') ? '' : eol}${eol}${addition}`
}

/** The statement behind which a key of the section belongs, and whether `[section]` is above it. */
function findEnd(
  statements: readonly Statement[],
  section: string,
): { readonly last: Statement | null; readonly isHeaded: boolean } {
  const header = statements.findIndex(
    ({ kind, path }) => kind === 'header' && isPath(path, [section]),
  )
  const next = statements.findIndex(({ kind }, index) => index > header && kind === 'header')
  const below = statements.slice(Math.max(0, header), next < 0 ? statements.length : next)
  return header < 0
    ? { last: below.findLast(({ path }) => path[0] === section) ?? null, isHeaded: false }
    : { last: below.at(-1) ?? null, isHeaded: true }
}

const findPair = (statements: readonly Statement[], wanted: readonly string[]) =>
  statements.find(({ kind, path }) => kind === 'pair' && isPath(path, wanted)) ?? null

const isPath = (path: readonly string[], wanted: readonly string[]) =>
  path.length === wanted.length && path.every((part, index) => part === wanted[index])

const renderKey = (key: string) => (/^[\w-]+$/.test(key) ? key : JSON.stringify(key))

interface Statement {
  readonly kind: 'header' | 'pair'
  /** From the root: `[server]` and `port` in it are `['server', 'port']`. */
  readonly path: readonly string[]
  /** The number of its first line, from 1. */
  readonly line: number
  /**
   * The offsets of the line on which it begins, and just past the line end (or the text's) behind
   * it.
   */
  readonly start: number
  readonly end: number
  /** The offsets of what stands behind the `=`; those of a header are its own. */
  readonly valueStart: number
  readonly valueEnd: number
}

type Block = TomlDocument['cst'][number]
type Node = Pick<Block, 'loc'>

/** In the order of the text; a text that is not TOML has none. */
export function listStatements(text: string): readonly Statement[] {
  // A byte order mark belongs to no line.
  const lines = [text.startsWith('\uFEFF') ? 1 : 0]
  for (const { index } of text.matchAll(/\n/g)) lines.push(index + 1)
  const startOf = (line: number) => lines[line - 1] ?? text.length

  const describe = (
    kind: Statement['kind'],
    path: readonly string[],
    { loc: { start } }: Node,
    { loc }: Node,
  ): Statement => ({
    kind,
    path,
    line: start.line,
    start: startOf(start.line),
    end: startOf(loc.end.line + 1),
    valueStart: startOf(loc.start.line) + loc.start.column,
    valueEnd: startOf(loc.end.line) + loc.end.column,
  })

  const listBlock = (header: readonly string[], block: Block): readonly Statement[] => {
    if ('equals' in block) {
      return [describe('pair', [...header, ...block.key.value], block, block.value)]
    }
    if (!('items' in block)) return []
    const path = block.key.item.value
    const pairs = block.items.flatMap((item) => listBlock(path, item))
    return [describe('header', path, block, block.key), ...pairs]
  }
  try {
    return parseDocument(text).cst.flatMap((block) => listBlock([], block))
  } catch {
    return [] // toml.ts reports what is wrong with a text.
  }
}
