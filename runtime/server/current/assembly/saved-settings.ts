/** Current line: checks settings that a page saves in the database, and saves all of them or none. */
import { findNamed } from '#kit/config/rules/setting.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import type { SettingsStore } from '#fleet/state/settings-store.ts'
import { SETTINGS } from '../rules/settings.ts'
import type { LineConfig } from './configuration.ts'

interface SavedSettingsDependencies {
  readonly config: LineConfig
  readonly store: SettingsStore
}

/** By dotted name; null removes the saved value. */
type SettingChanges = Readonly<Record<string, string | null>>

interface SettingRefusal {
  readonly at: string
  readonly error: string
}

/**
 * By dotted name (`section.key`), all or none, in effect when it resolves. An empty text removes
 * the saved value; a value already in effect is skipped. The refusal names the first bad setting.
 */
export async function saveSettings(
  { config, store }: SavedSettingsDependencies,
  given: Readonly<Record<string, string>>,
): Promise<Result<SettingChanges, SettingRefusal>> {
  const changes: Record<string, string | null> = {}
  const shown = new Map(config.list().map(({ name, text }) => [name, text]))
  for (const [name, text] of Object.entries(given)) {
    // A file's value that nobody changed stays the file's.
    if (shown.get(name) === text.trim()) continue
    const parsed = parseSaved(config, name, text.trim())
    if (!parsed.ok) return refuse({ at: name, error: parsed.refusal })
    changes[name] = parsed.value
  }
  if (Object.keys(changes).length > 0) {
    await store.save(changes)
    config.readSaved()
  }
  return accept(changes)
}

export const checkSettings = (
  config: LineConfig,
  given: Readonly<Record<string, string>>,
): readonly SettingRefusal[] =>
  Object.entries(given).flatMap(([at, text]) => {
    const parsed = parseSaved(config, at, text.trim())
    return parsed.ok ? [] : [{ at, error: parsed.refusal }]
  })

function parseSaved(config: LineConfig, name: string, text: string): Result<string | null, string> {
  const [section = '', key = ''] = name.split('.')
  const origin = config.originOf(section, key)
  if (origin?.by === 'environment') {
    return refuse(fill(PAGES.settings.errors.environment, { variable: origin.variable }))
  }
  if (text === '') return accept(null)
  const row = findNamed(SETTINGS, name)
  const parsed = row?.parse(row.fromText(text))
  return parsed?.ok === false ? refuse(parsed.refusal) : accept(text)
}
