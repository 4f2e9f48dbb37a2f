/** Earlier line: reads the configuration of its server. */
import { readConfig, type Config } from '#kit/config/config.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { parseSettings, SETTINGS } from '../rules/settings.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

export type LineConfig = Config<typeof SETTINGS>

/** From the usual places, or the files of `--config`. Rejects with a Fault for each bad value. */
export const readConfiguration = (
  environment: Pick<ProcessEnvironment, 'env' | 'systemDir' | 'isRoot'>,
  given: Pick<Arguments, 'lists'>,
): Promise<LineConfig> => readConfig({ table: SETTINGS, parse: parseSettings }, environment, given)

/** Below the state directory, unless a setting names another path. */
export function decideFolders(config: LineConfig) {
  const { stateDir } = config
  const { boot_dir, image_root } = config.current().paths
  return {
    stateDir,
    secret: `${stateDir}/session-secret`,
    signedOut: `${stateDir}/signed-out.json`,
    fetches: `${stateDir}/fetches`,
    provision: `${stateDir}/provision`,
    workflows: `${stateDir}/workflows`,
    workflowRecords: `${stateDir}/workflow-records`,
    keys: `${stateDir}/keys`,
    boot: boot_dir || `${stateDir}/boot`,
    images: image_root,
  } as const
}
