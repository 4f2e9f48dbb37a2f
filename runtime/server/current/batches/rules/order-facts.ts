/** What the record of a machine says of its order, for the batch that the order came with. */
import { isPending } from '../../../../engine/capture/rules/order.ts'
import {
  decideMember,
  type MemberState,
  type OrderFacts,
} from '../../../../fleet/batch/rules/batch.ts'
import { MODES } from '../../rules/boot-mode.ts'
import { beginsOrder, hasOrder } from '../../rules/disarming.ts'
import type { Machine } from '../../rules/machine.ts'

/** The action whose order is not the machine's cycle. */
const CAPTURE = 'capture'

/** Returns what a batch of this action has to know of a machine; null: it has no such order. */
export const describeOrder = (machine: Machine, action: string): OrderFacts | null =>
  action === CAPTURE ? describeCapture(machine) : describeCycle(machine)

function describeCycle({ cycle }: Machine): OrderFacts {
  const { before } = cycle
  return {
    order: cycle.started_at,
    isFinished: cycle.finished_at !== null,
    isDisarmed: cycle.disarmed_at !== null || cycle.disk_allowed_at !== null,
    hasFailed: cycle.failure !== null || cycle.loop_suspected_at !== null,
    hasBegun: cycle.planned || cycle.offered_at !== null || cycle.offers > 0,
    isPaused: cycle.paused_at !== null,
    finishedBefore: before === null || before.finished_at === null ? null : before.started_at,
  }
}

function describeCapture({ capture }: Machine): OrderFacts | null {
  if (capture === null) return null
  return {
    order: capture.ordered_at,
    isFinished: capture.result === 'done',
    isDisarmed: capture.result === 'cancelled',
    hasFailed: capture.result === 'failed',
    hasBegun: capture.planned_at !== null || capture.offers > 0,
    isPaused: false,
    finishedBefore: null,
  }
}

/**
 * Returns the name of the order that an action gave a machine; null: it gave none, and what it did is
 * done.
 */
export function findNewOrder(before: Machine, after: Machine, action: string): string | null {
  if (action === CAPTURE) {
    return isPending(after.capture) && after.capture !== before.capture
      ? after.capture.ordered_at
      : null
  }
  if (!beginsOrder(before, after)) return null
  const hasEnd = MODES[after.boot_mode].does === 'list-disks' || hasOrder(after)
  return hasEnd ? after.cycle.started_at : null
}

/** Says what has become of the order of a machine that is given another one. */
export function decideLeaving(before: Machine): MemberState {
  const facts = describeCycle(before)
  const state = decideMember({ order: facts.order, refusal: null, left: null }, facts)
  return state === 'done' || state === 'failed' || state === 'disarmed' ? state : 'replaced'
}
