/** Current line: the services that are about machines, for what one of the callers sees. */
import type { PowerControl } from '#server/power/power-control.ts'
import { scopePower } from '#server/power/scoped-power.ts'
import type { Site } from '#server/routes/site.ts'
import { scopeKeeper, type ScopedKeeperDependencies } from '../batches/scoped-keeper.ts'
import type { BatchKeeper } from '../batches/batch-keeper.ts'
import type { Machine } from '../rules/machine.ts'

interface SeenDependencies extends Omit<ScopedKeeperDependencies, 'machines'> {
  readonly power: PowerControl
}

type SeenSite = Pick<Site<Machine>, 'machines' | 'bounds' | 'sees'>

export interface SeenServices {
  readonly keeper: BatchKeeper
  readonly power: PowerControl
}

export const createSeenServices =
  ({ power, ...parts }: SeenDependencies) =>
  ({ machines, bounds, sees }: SeenSite): SeenServices =>
    bounds === null || bounds.reach === null
      ? { keeper: parts.keeper, power }
      : { keeper: scopeKeeper({ ...parts, machines }), power: scopePower(power, sees) }
