/** Current line: the actions of operators as the shared server carries them out: with channels, batches and events. */
import { compareFields } from '#fleet/state/rules/event-changes.ts'
import type { Armer } from '#engine/inventory/rules/run.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Action } from '#server/routes/line.ts'
import { resolveAction, type FindChannel } from './channels/rules/channel-order.ts'
import type { SeesMachine } from './captures/rules/capture-owner.ts'
import type { MachineAction } from './rules/action.ts'
import { beginsOrder, limitOrder, pauseOrder } from './rules/disarming.ts'
import type { Machine } from './rules/machine.ts'
import * as events from './rules/machine-events.ts'
import { rememberArmer } from './rules/run.ts'
import type { PxeRules, Surroundings } from './rules/surroundings.ts'

export interface ActionDependencies extends Pick<Surroundings, 'findTemplate'> {
  settings(): Pick<PxeRules, 'armed_hours'>
  /** Absent: no channels. */
  readonly findChannel?: FindChannel
  /** Orders of a paused batch begin paused; absent: no batches. */
  isPaused?(batch: string): boolean
  /** Null: none. */
  cacheUrl(): string | null
  /** Why the name is taken, to someone who sees these machines; null: free. Absent: no check. */
  findNameOwner?(name: string, mac: Mac, sees?: SeesMachine): string | null
}

export const findIn = ({ findChannel }: Pick<ActionDependencies, 'findChannel'>): FindChannel =>
  findChannel ?? (() => null)

export const sign = (
  { armed_hours = 0 }: Pick<PxeRules, 'armed_hours'>,
  before: Machine | null,
  after: Machine,
  by: Armer,
): Machine => limitOrder(before, rememberArmer(before, after, by), armed_hours, by.at)

/** Null: it exists, or none is named. */
export function findUnknownTemplate(
  { findTemplate }: Pick<ActionDependencies, 'findTemplate'>,
  name: string | null | undefined,
): string | null {
  if (name === null || name === undefined || findTemplate(name) !== null) return null
  return `There is no first-boot template ${name}.`
}

export const toAction = (
  site: ActionDependencies,
  name: string,
  action: MachineAction,
): Action<Machine> => ({
  ...action,
  apply(machine, parameters, by, batch = null, sees) {
    const applied = applyResolved(site, action, { machine, name, parameters, now: by.at })
    if (!applied.ok) return applied
    const unknown = findUnknownTemplate(site, newTemplate(machine, applied.value))
    if (unknown !== null) return refuse(unknown)
    const obstacle = name === 'capture' ? findCaptureObstacle(site, applied.value, sees) : null
    if (obstacle !== null) return refuse(obstacle)
    const summary = `${machine.mac} ${action.past}`
    const after = events.describe(applied.value)
    const changes = compareFields(events.describe(machine), after)
    // First, because the journal finds the events of a batch by it.
    const details = { ...(batch === null ? {} : { batch }), action: name, ...after, changes }
    return accept({
      machine: joinBatch(site, machine, sign(site.settings(), machine, applied.value, by), batch),
      events: [{ kind: `machine.${name}`, summary, details }],
    })
  },
})

interface AppliedAction {
  readonly machine: Machine
  readonly name: string
  readonly parameters: unknown
  readonly now: string
}

function applyResolved(
  site: ActionDependencies,
  action: MachineAction,
  { machine, name, parameters, now }: AppliedAction,
): Result<Machine, string> {
  const resolved = resolveAction(machine, name, parameters, findIn(site))
  if (!resolved.ok) return resolved
  const { channel, ...on } = resolved.value
  const applied = action.apply(on.machine, on.parameters, now)
  if (!applied.ok || channel === undefined) return applied
  return accept({ ...applied.value, channel })
}

/** Only an order that the action gives belongs to the batch, none that was there before. */
function joinBatch(
  { isPaused }: ActionDependencies,
  before: Machine,
  after: Machine,
  batch: string | null,
): Machine {
  if (batch === null || !beginsOrder(before, after)) return after
  const joined = { ...after, cycle: { ...after.cycle, batch } }
  const paused = isPaused?.(batch) === true ? pauseOrder(joined, after.updated_at) : null
  return paused?.ok === true ? paused.value : joined
}

/** Null: the upload is possible, and nobody else uses the name. */
function findCaptureObstacle(
  { cacheUrl, findNameOwner }: ActionDependencies,
  { mac, capture }: Machine,
  sees: SeesMachine | undefined,
): string | null {
  if (cacheUrl() === null) return NO_CACHE
  return capture === null ? null : (findNameOwner?.(capture.name, mac, sees) ?? null)
}

const NO_CACHE = 'The server has no cache service to upload the image to.'

/** Null: unchanged. */
const newTemplate = (before: Machine, { first_boot }: Machine): string | null =>
  first_boot === before.first_boot ? null : first_boot
