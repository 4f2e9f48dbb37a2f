/** Current line: the services that are about machines, for what one of the callers sees. */
import type { PowerControl } from '#server/power/power-control.ts'
import { scopePower } from '#server/power/scoped-power.ts'
import type { Site } from '#server/routes/site.ts'
import {
  type BatchKeeper,
  viewEach,
  type SeenMachines,
} from '#server/current/batches/keeper/batch-keeper.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { Batches } from '#fleet/batch/batches.ts'
import type { Batch } from '#fleet/batch/rules/batch.ts'

interface SeenDependencies extends Omit<ScopedKeeperDependencies, 'machines'> {
  readonly power: PowerControl
}

type SeenSite = Pick<Site<Machine>, 'machines' | 'bounds' | 'canSee'>

export interface SeenServices {
  readonly keeper: BatchKeeper
  readonly power: PowerControl
}

export const createSeenServices =
  ({ power, ...parts }: SeenDependencies) =>
  ({ machines, bounds, canSee }: SeenSite): SeenServices =>
    bounds === null || bounds.reach === null
      ? { keeper: parts.keeper, power }
      : { keeper: scopeKeeper({ ...parts, machines }), power: scopePower(power, canSee) }

// Batches as somebody with a scope sees them: with the machines of theirs, and none that has no such machine.

interface ScopedKeeperDependencies {
  readonly keeper: BatchKeeper
  readonly batches: Pick<Batches, 'countAmong'>
  readonly machines: SeenMachines
  open(machines: SeenMachines): BatchKeeper
}

/** Hides a batch's common search where it has unseen machines: it may contain their names. */
function scopeKeeper(parts: ScopedKeeperDependencies): BatchKeeper {
  const { keeper, batches, machines } = parts
  const seen = parts.open(machines)
  const listMembers: BatchKeeper['listMembers'] = (batch) =>
    seen.listMembers(batch).filter(({ machine }) => machine !== null)
  const view: BatchKeeper['view'] = (batch, members = listMembers(batch)) =>
    seen.view(batch, members)

  function list(): readonly Batch[] {
    const counts = batches.countAmong(machines.peekAll().map(({ mac }) => mac))
    return keeper.list().flatMap((batch) => {
      const among = counts.get(batch.id) ?? 0
      return among === 0 ? [] : [cut(batch, among)]
    })
  }
  /** Also what is not stored yet. */
  function find(id: string): Batch | null {
    const batch = keeper.find(id)
    const among = batch === null ? 0 : listMembers(batch).length
    return batch === null || among === 0 ? null : cut(batch, among)
  }

  const listOpen = () =>
    seen.listOpen().flatMap(({ batch: { id } }) => {
      const batch = find(id)
      return batch === null ? [] : [view(batch)]
    })

  return {
    ...seen,
    find,
    list,
    listMembers,
    view,
    isWhole: ({ id, machines: count }) => keeper.find(id)?.machines === count,
    viewAll: (several) => viewEach(several, view),
    listOpen,
    countOpen: () => listOpen().length,
  }
}

const cut = (batch: Batch, among: number): Batch =>
  among === batch.machines ? batch : { ...batch, machines: among, target: null }
