/** Current line: opens the database and everything stored in it, for the server or for one command. */
import { openFleetState, type FleetState } from '../../../program/fleet-state.ts'
import { createTemplates, type Templates } from '../../../services/first-boot/templates.ts'
import type { LineConfig } from './configuration.ts'
import type { Machine } from '../rules/machine.ts'
import { parseRecord } from '../rules/record.ts'

export interface State extends FleetState<Machine> {
  readonly templates: Templates
}

interface StateOptions extends Pick<
  Parameters<typeof openFleetState>[0],
  'release' | 'visit' | 'log'
> {
  readonly config: LineConfig
}

/** Makes the state directory and the database where they are missing. */
export async function openState(options: StateOptions): Promise<State> {
  const state = await openFleetState({ ...options, line: 'current', parseRecord })
  return { ...state, templates: createTemplates(state.database) }
}
