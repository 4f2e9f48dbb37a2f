/** Earlier line: opens the database and everything stored in it. */
import { openFleetState, type FleetState } from '../../../program/fleet-state.ts'
import { parseRecord } from '../rules/record.ts'
import type { Machine } from '../rules/machine.ts'
import type { LineConfig } from './configuration.ts'

export type State = FleetState<Machine>

interface StateOptions {
  readonly config: LineConfig
  readonly release: string
  readonly log: { warn(message: string): void }
}

/** A file of the current line is refused: switching the line never hides a fleet. */
export const openState = ({ config, release, log }: StateOptions): Promise<State> =>
  openFleetState({
    config,
    settings: config.current,
    line: 'earlier',
    parseRecord,
    release,
    visit: false,
    log,
  })
