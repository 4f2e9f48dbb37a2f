/** Renders a setting for pages, commands and the reference; secrets are never shown. */
import {
  listSettings,
  renderText,
  variablesOf,
  type Setting,
  type SettingsTable,
} from './setting.ts'
import { valueOf, type Origin } from './settings-parser.ts'

export type ShownSetting = ReturnType<typeof describeSettings>[number]

/** In the table's order; `configured` is the configuration as it is now. */
export const describeSettings = (
  table: SettingsTable,
  configured: object,
  origins: ReadonlyMap<string, Origin>,
  pending: readonly string[],
) =>
  listSettings(table).map(({ section, key, row }) => {
    const name = `${section}.${key}`
    const origin: Origin = origins.get(name) ?? { by: 'default' }
    const value = valueOf(configured, section, key)
    const text = textOf(row, value)
    return {
      section,
      key,
      /** `server.port` */
      name,
      setting: row,
      /** Null for secrets. */
      value: row.isSecret ? null : value,
      /** The text as a file or variable holds it; it is empty for secrets and defaults. */
      text: row.isSecret || origin.by === 'default' ? '' : text,
      /** For people: `set` or `unset` for secrets, a default in words where its value is not clear. */
      shown: renderShown(row, text, origin),
      origin,
      /** Changed, and in effect from the next start on. */
      isPending: pending.includes(name),
      variable: variablesOf(section, key, row)[0],
    }
  })

export type Lock =
  | { readonly why: 'environment'; readonly variable: string }
  | { readonly why: 'kept' }
  /** The file that holds it, or those that could: none may be written. */
  | { readonly why: 'read-only'; readonly paths: readonly string[] }

/** Where edits may go: the files that count, the winner first, and those of them that can be written. */
export interface EditPaths {
  readonly paths: readonly string[]
  readonly writable: readonly string[]
}

/** Null when a page can change it. */
export function decideLock(
  { origin, setting }: ShownSetting,
  { paths, writable }: EditPaths,
): Lock | null {
  if (origin.by === 'environment') return { why: 'environment', variable: origin.variable }
  if (setting.isKept) return { why: 'kept' }
  // It is saved in the database.
  if (setting.card !== null) return null
  const holders = origin.by === 'file' ? [origin.path] : paths
  return holders.some((path) => writable.includes(path))
    ? null
    : { why: 'read-only', paths: holders }
}

/** Markdown, for the reference. */
export const renderFallback = (row: Setting<unknown>): string =>
  row.fallbackWords ??
  (textOf(row, row.fallback) === '' ? 'none' : `\`${textOf(row, row.fallback)}\``)

function textOf(row: Setting<unknown>, value: unknown): string {
  const toml = row.toToml(value)
  return toml === null ? '' : renderText(toml)
}

function renderShown(row: Setting<unknown>, text: string, origin: Origin): string {
  if (row.isSecret) return text === '' ? 'unset' : 'set'
  if (origin.by !== 'default' || text !== '') return text
  return row.fallbackWords?.replaceAll('`', '') ?? ''
}
