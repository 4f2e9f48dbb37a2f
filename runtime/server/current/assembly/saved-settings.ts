/** Current line: checks settings that a page saves in the database, and saves all of them or none. */
import { findNamed } from '../../../kit/config/rules/setting.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { PAGES } from '../../texts/texts.ts'
import { fill } from '../../../kit/texts/text.ts'
import type { SettingsStore } from '../../../fleet/state/settings-store.ts'
import { SETTINGS } from '../rules/settings.ts'
import type { LineConfig } from './configuration.ts'

interface SavedSettingsDependencies {
  readonly config: LineConfig
  readonly store: SettingsStore
}

/** The changes by dotted name; null: the value that was saved is removed. */
type SettingChanges = Readonly<Record<string, string | null>>

interface SettingRefusal {
  /** The dotted name. */
  readonly at: string
  readonly error: string
}

/**
 * Saves texts by dotted name (`section.key`), all of them or none; an empty text removes what was
 * saved, and a text that is in effect already is skipped. The changes are in effect when it resolves.
 *
 * The refusal names the first setting that cannot be saved, and why.
 */
export async function saveSettings(
  { config, store }: SavedSettingsDependencies,
  given: Readonly<Record<string, string>>,
): Promise<Result<SettingChanges, SettingRefusal>> {
  const changes: Record<string, string | null> = {}
  const shown = new Map(config.list().map(({ name, text }) => [name, text]))
  for (const [name, text] of Object.entries(given)) {
    // What a file says and nobody changed stays the file's.
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

/** Lists those of the texts that `saveSettings` would refuse, each with the reason. */
export const checkSettings = (
  config: LineConfig,
  given: Readonly<Record<string, string>>,
): readonly SettingRefusal[] =>
  Object.entries(given).flatMap(([at, text]) => {
    const parsed = parseSaved(config, at, text.trim())
    return parsed.ok ? [] : [{ at, error: parsed.refusal }]
  })

/**
 * Parses a value with the setting's own rule; null: an empty text, which removes what was saved.
 */
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
