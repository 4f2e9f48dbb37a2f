/** One key of a TOML text set or removed, every other byte kept as its author wrote it. */
import { patch } from '@decimalturn/toml-patch'
import { stringify } from 'smol-toml'
import { accept, refuse, type Result } from '../foundation/result.ts'
import type { TomlValue } from './setting.ts'
import { listStatements, type Statement } from './toml-statements.ts'
import { isSameToml, isTable, parseToml, type TomlProblem } from './toml.ts'

interface TomlKey {
  readonly section: string
  readonly key: string
}

export type TomlEditRefusal =
  /** The text is no TOML as it stands. */
  | { readonly why: 'not-toml'; readonly problem: TomlProblem }
  /** The section's name stands for something that is no table. */
  | { readonly why: 'not-a-section' }
  /** The edited text would say something else than was asked: nothing may be written. */
  | { readonly why: 'too-unusual' }

type Table = Readonly<Record<string, unknown>>

const BYTE_ORDER_MARK = '\uFEFF'

/**
 * A key goes behind the others of its section, a section to the end where there is none. `null`
 * removes the key's lines; comments above stay. The same text comes back where it says so already.
 */
export function editToml(
  text: string,
  at: TomlKey,
  value: TomlValue | null,
): Result<string, TomlEditRefusal> {
  const mark = text.startsWith(BYTE_ORDER_MARK) ? BYTE_ORDER_MARK : ''
  const edited = editBare(text.slice(mark.length), at, value)
  return edited.ok ? accept(`${mark}${edited.value}`) : edited
}

function editBare(
  text: string,
  at: TomlKey,
  value: TomlValue | null,
): Result<string, TomlEditRefusal> {
  const before = parseToml(text)
  if (!before.ok) return refuse({ why: 'not-toml', problem: before.refusal })
  const section = before.value[at.section]
  if (section !== undefined && !isTable(section)) return refuse({ why: 'not-a-section' })
  const wanted = withKey(before.value, at, value)
  if (isSameToml(wanted, before.value)) return accept(text)
  const edited = value === null ? remove(text, at, wanted) : put(text, at, value, wanted)
  const after = parseToml(edited)
  return after.ok && isSameToml(after.value, wanted)
    ? accept(edited)
    : refuse({ why: 'too-unusual' })
}

/** The line (from 1) on which a key stands; null when it has no line of its own. */
export function locateTomlKey(text: string, { section, key }: TomlKey): number | null {
  const statements = listStatements(text)
  const found = findPair(statements, [section, key]) ?? findPair(statements, [section])
  return found === null ? null : lineOf(text, found)
}

/** The line of `[section]`, or of the first of its keys. */
export function locateTomlSection(text: string, section: string): number | null {
  const found = listStatements(text).find(({ path }) => path[0] === section)
  return found === undefined ? null : lineOf(text, found)
}

const lineOf = (text: string, { start }: Statement) => text.slice(0, start).split('\n').length

function withKey(document: Table, { section, key }: TomlKey, value: TomlValue | null): Table {
  const table = isTable(document[section]) ? document[section] : {}
  if (value !== null) return { ...document, [section]: { ...table, [key]: value } }
  const { [key]: before, ...others } = table
  return before === undefined ? document : { ...document, [section]: others }
}

function remove(text: string, { section, key }: TomlKey, wanted: Table): string {
  const statements = listStatements(text)
  const pair = findPair(statements, [section, key])
  if (pair !== null) return text.slice(0, pair.start) + text.slice(pair.end)
  return rewriteInline(text, statements, section, wanted)
}

function put(text: string, at: TomlKey, value: TomlValue, wanted: Table): string {
  const { section, key } = at
  const statements = listStatements(text)
  const pair = findPair(statements, [section, key])
  if (pair !== null) return withValue(text, pair, value)
  if (findPair(statements, [section]) !== null) {
    return rewriteInline(text, statements, section, wanted)
  }
  return add(text, statements, at, value)
}

/** `section = { … }`: the whole table is one value. */
function rewriteInline(
  text: string,
  statements: readonly Statement[],
  section: string,
  wanted: Table,
): string {
  const pair = findPair(statements, [section])
  return pair === null ? text : withValue(text, pair, wanted[section])
}

const withValue = (text: string, { valueStart, valueEnd }: Statement, value: unknown) =>
  text.slice(0, valueStart) +
  renderInStyle(text.slice(valueStart, valueEnd), value) +
  text.slice(valueEnd)

const NAME = 'value = '

/** The new value with the old one's quotes, layout and comments as far as the editor can. */
function renderInStyle(before: string, value: unknown): string {
  const even = `${NAME}${before.replaceAll('\r\n', '\n')}\n`
  const patched = tryPatch(even, value)
  if (patched === null) return render(value)
  return before.includes('\r\n') ? patched.replaceAll('\n', '\r\n') : patched
}

/** Null where the editor does not say the value, as with comments in lists that get shorter. */
function tryPatch(text: string, value: unknown): string | null {
  try {
    const patched = patch(text, { value }, { newLine: '\n' }).trimEnd()
    const after = parseToml(patched)
    const isRight = after.ok && isSameToml(after.value, { value })
    return isRight && patched.startsWith(NAME) ? patched.slice(NAME.length) : null
  } catch {
    return null // It knows no more of that text than this.
  }
}

const render = (value: unknown) => stringify({ value }).trimEnd().slice(NAME.length)

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
