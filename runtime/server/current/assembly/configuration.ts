/** Current line: reads the configuration for one run of the program. */
import type { Origin } from '#kit/config/rules/settings-parser.ts'
import { readConfig, type Config } from '#kit/config/config.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { parseSettings, SETTINGS } from '#server/current/settings/rules/settings.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { findNamed } from '#kit/config/rules/setting.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { SettingsStore } from '#fleet/state/settings-store.ts'

export type LineConfig = Config<typeof SETTINGS>

/** From the usual places, or the files of `--config`. Rejects with a Fault for each bad value. */
export const readConfiguration = (
  environment: ProcessEnvironment,
  given: Arguments,
): Promise<LineConfig> => readConfig({ table: SETTINGS, parse: parseSettings }, environment, given)

/** Null: not configured, so the hash in the state directory counts. */
export function findPasswordOrigin(config: LineConfig): Origin | null {
  const { admin } = config.current()
  const key = (['password', 'password_hash'] as const).find((each) => admin[each].trim() !== '')
  return key === undefined ? null : config.originOf('admin', key)
}

/** Below the state directory, unless a setting names another path. */
export function decideFolders(config: LineConfig) {
  const { stateDir } = config
  const { paths, cache } = config.current()
  return {
    stateDir,
    database: `${stateDir}/state.db`,
    secret: `${stateDir}/session-secret`,
    password: `${stateDir}/admin-password`,
    signedOut: `${stateDir}/signed-out.json`,
    power: `${stateDir}/power.json`,
    notify: `${stateDir}/notify.json`,
    cluster: `${stateDir}/cluster.json`,
    catalog: `${stateDir}/catalog.toml`,
    fetches: `${stateDir}/fetches`,
    backupJobs: `${stateDir}/backup-jobs`,
    boot: paths.boot_dir || `${stateDir}/boot`,
    backups: paths.backup_dir || `${stateDir}/backups`,
    cache: cache.dir || `${stateDir}/cache`,
  } as const
}

/** Current line: how its server listens, whether it leads or not. */
export const listenSettingsOf = (config: LineConfig) => ({
  ...config.current().server,
  settingHint:
    'Set them with FLASHER_SERVER_HOST and FLASHER_SERVER_PORT, or [server] host and port.',
})

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
    return refuse(`it is set by the environment variable ${origin.variable}`)
  }
  if (text === '') return accept(null)
  const row = findNamed(SETTINGS, name)
  const parsed = row?.parse(row.fromText(text))
  return parsed?.ok === false ? refuse(parsed.refusal) : accept(text)
}
