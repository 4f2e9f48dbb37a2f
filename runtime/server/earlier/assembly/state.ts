/** Earlier line: opens the database and everything stored in it, the machines of a deployed server included. */
import { type FleetState, openFleetState } from '#server/app/machine-server.ts'
import { renderDisarmed, type OrderRules } from '#fleet/backup/disarming.ts'
import { readDeployedMachines } from '#fleet/backup/earlier-state.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { describe } from '../rules/machine-events.ts'
import {
  parseDeployedRow,
  parseRecord,
  disarm,
  keepHeldBack,
  nameMachine,
  type Machine,
} from '../rules/machine.ts'
import { readConfig, type Config } from '#kit/config/config.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { parseSettings, SETTINGS } from '../rules/settings.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

const ORDERS: OrderRules<Machine> = {
  parseRecord,
  disarm,
  keepHeldBack,
  nameOf: nameMachine,
  describe,
}

export type State = FleetState<Machine>

interface StateOptions {
  readonly config: LineConfig
  readonly release: string
  readonly log: { warn(message: string): void }
}

/**
 * Refuses a file of the current line, so that switching the line never hides a fleet. The deployed
 * server's file becomes `.bak`; its machines continue here, disarmed. Rejects as `openFleetState`
 * does.
 */
export async function openState({ config, release, log }: StateOptions): Promise<State> {
  const former = await readDeployedMachines(`${config.stateDir}/state.db`)
  const options = { line: 'earlier', orders: ORDERS, visit: false } as const
  const state = await openFleetState({ ...options, config, release, log })
  if (former !== null) await takeOver(state, former.map(parseDeployedRow), log)
  return state
}

async function takeOver(
  { machines, journal }: State,
  former: readonly (Machine | null)[],
  log: StateOptions['log'],
): Promise<void> {
  const now = new Date().toISOString()
  const found = former.filter((machine) => machine !== null)
  // Nobody knows how old that file is.
  const taken = found.map((machine) => disarm(machine, now))
  const armed = found.filter((machine, at) => machine !== taken[at])
  const disarmed = armed.map((machine) => ({ mac: machine.mac, name: nameMachine(machine) }))
  await machines.updateMany(
    taken.map((machine) => ({
      mac: machine.mac,
      change: (before) => before ?? machine,
      hardware: null,
    })),
  )
  const left = former.length - found.length
  const summary = `${found.length} machines of the previous server were imported, ${left} could not be read`
  log.warn(summary)
  await journal.record({ ...SYSTEM_EVENT, kind: 'system.state.taken_over', summary })
  if (disarmed.length === 0) return
  const words = renderDisarmed(disarmed)
  log.warn(words)
  const kind = 'system.state.disarmed'
  await journal.record({ ...SYSTEM_EVENT, kind, summary: words, details: { disarmed } })
}

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
