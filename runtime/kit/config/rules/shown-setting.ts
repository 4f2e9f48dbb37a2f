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

/** All of them in the table's order; `configured` is the configuration as it is now. */
export const describeSettings = (
  table: SettingsTable,
  configured: object,
  origins: ReadonlyMap<string, Origin>,
  pending: readonly string[],
) =>
  listSettings(table).map(({ section, key, row }) => {
    const name = `${section}.${key}`
    const origin: Origin = origins.get(name) ?? { by: 'default' }
    const text = textOf(row, valueOf(configured, section, key))
    return {
      section,
      key,
      help: row.help,
      /** To follow "must be". */
      wants: row.wants,
      /** As a form's field holds it; empty for secrets and defaults. */
      text: row.isSecret || origin.by === 'default' ? '' : text,
      /** For people: `set` or `unset` for secrets, a default in words where its value is not clear. */
      shown: renderShown(row, text, origin),
      origin,
      isSecret: row.isSecret,
      /** Changed, and in effect from the next start on. */
      isPending: pending.includes(name),
      /** A page cannot change it: a secret, or set by the environment. */
      isLocked: row.isSecret || origin.by === 'environment',
      reload: row.reload,
      /** The variable that sets it. */
      variable: variablesOf(section, key, row)[0],
    }
  })

/** The default, for the reference. */
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
