/** Current line: reads the configuration for one run of the program. */
import type { Origin } from '#kit/config/rules/settings-parser.ts'
import { readConfig, type Config } from '#kit/config/config.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { parseSettings, SETTINGS } from '../rules/settings.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

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
