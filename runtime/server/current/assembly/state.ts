/** Current line: opens the database and everything stored in it, for the server or for one command. */
import { openFleetState, type FleetState } from '../../app/fleet-state.ts'
import type { OrderRules } from '../../../fleet/backup/disarming.ts'
import { createTemplates, type Templates } from '../../../fleet/first-boot/templates.ts'
import type { LineConfig } from './configuration.ts'
import type { Machine } from '../rules/machine.ts'
import { disarm, keepHeldBack, nameMachine } from '../rules/disarming.ts'
import { parseRecord } from '../rules/record.ts'

export interface State extends FleetState<Machine> {
  readonly templates: Templates
}

/** What a database may not do that is put in the place of a newer one. */
export const ORDERS: OrderRules<Machine> = {
  parseRecord,
  disarm,
  keepHeldBack,
  nameOf: nameMachine,
}

interface StateOptions extends Pick<
  Parameters<typeof openFleetState>[0],
  'release' | 'visit' | 'replacesDamaged' | 'log'
> {
  readonly config: LineConfig
}

/**
 * Opens the database of this line and everything stored in it, and makes the state directory and the
 * database where they are missing. It rejects as `openFleetState` does.
 */
export async function openState(options: StateOptions): Promise<State> {
  const state = await openFleetState({ ...options, line: 'current', orders: ORDERS })
  return { ...state, templates: createTemplates(state.database) }
}
