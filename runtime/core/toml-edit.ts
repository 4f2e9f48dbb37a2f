/** One key of a TOML text set or removed, everything else kept byte for byte as its author wrote it. */
import { parse, patch } from '@decimalturn/toml-patch'
import { accept, refuse, type Result } from './result.ts'
import type { TomlValue } from './setting.ts'
import { graftLines, splitLines, type Lines } from './text-graft.ts'
import { isSameToml, isTable, parseToml, type TomlProblem } from './toml.ts'

export interface TomlKey {
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

/**
 * A section is added at the end where there is none. `null` removes the key and the comment behind
 * it; comments above stay. The same text comes back where it says so already.
 */
export function editToml(
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
  // Some values defeat the editor in place, lists with comments in them for example.
  const edited = tryEdit(text, at, value, wanted) ?? tryAnew(text, at, value, wanted)
  return edited === null ? refuse({ why: 'too-unusual' }) : accept(edited)
}

/** Null where the result would not say what is wanted. */
function tryEdit(text: string, at: TomlKey, value: TomlValue | null, wanted: unknown) {
  const lines = splitLines(text)
  const patched = patchLines(lines, at, value)
  if (patched === null) return null
  const edited = [true, false]
    .map((keepsGaps) => graftLines(lines, patched, { isRemoval: value === null, keepsGaps }))
    .find((candidate) => says(candidate, wanted))
  return edited ?? null
}

/** Takes the key out, then adds it. */
function tryAnew(text: string, at: TomlKey, value: TomlValue | null, wanted: unknown) {
  const before = parseToml(text)
  if (value === null || !before.ok) return null
  const without = tryEdit(text, at, null, withKey(before.value, at, null))
  return without === null ? null : tryEdit(without, at, value, wanted)
}

/** The line (from 1) on which a key's value begins; null when the text holds no such key. */
export function locateTomlKey(text: string, at: TomlKey): number | null {
  const before = parseToml(text)
  const section = before.ok ? before.value[at.section] : undefined
  if (!isTable(section) || !Object.hasOwn(section, at.key)) return null
  // It is where an edit of that key would begin.
  const lines = splitLines(text)
  const other = patchLines(lines, at, UNLIKELY)
  const index = lines.bare.findIndex((line, place) => line !== other?.[place])
  return other === null || index < 0 ? null : index + 1
}

/** The line of `[section]`; null when it has no header of its own. */
export function locateTomlSection(text: string, section: string): number | null {
  const header = new RegExp(`^\\s*\\[\\s*["']?${RegExp.escape(section)}["']?\\s*[\\].]`)
  const index = splitLines(text).bare.findIndex((line) => header.test(line))
  return index < 0 ? null : index + 1
}

/** A value that no file holds. */
const UNLIKELY = 'where is it, 7f3b9c'

/**
 * What the editor makes of the text's lines. It evens out line ends and blanks at the ends of lines
 * anyway, so it gets them without. Null: it and the parser disagree about the text.
 */
function patchLines(
  { bare }: Lines,
  at: TomlKey,
  value: TomlValue | null,
): readonly string[] | null {
  const even = bare.join('\n')
  try {
    const before: unknown = parse(even)
    if (!isTable(before)) return null
    return patch(even, withKey(before, at, value), { newLine: '\n' }).split('\n')
  } catch {
    return null // No reason to guess.
  }
}

function withKey(
  document: Readonly<Record<string, unknown>>,
  { section, key }: TomlKey,
  value: TomlValue | null,
): Readonly<Record<string, unknown>> {
  const table = isTable(document[section]) ? document[section] : {}
  if (value !== null) return { ...document, [section]: { ...table, [key]: value } }
  const { [key]: before, ...others } = table
  return before === undefined ? document : { ...document, [section]: others }
}

function says(text: string, wanted: unknown): boolean {
  const after = parseToml(text)
  return after.ok && isSameToml(after.value, wanted)
}
