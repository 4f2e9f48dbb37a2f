/** What the record of a machine says of its order, for the batch that the order came with. */
import { isPending } from '#engine/capture/rules/order.ts'
import {
  decideMember,
  type Batch,
  type MemberState,
  type OrderFacts,
} from '#fleet/batch/rules/batch.ts'
import { flashesAlways, isFlashMode, MODES } from '#server/current/machines/rules/boot-mode.ts'
import { beginsOrder, hasFlashOrder, hasOrder } from '#server/current/machines/rules/disarming.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'

/** The action whose order is not the machine's cycle. */
const CAPTURE = 'capture'

/** Null: the machine has no order of that kind. */
export const describeOrder = (
  machine: Machine,
  { id, action }: Pick<Batch, 'id' | 'action'>,
): OrderFacts | null =>
  action === CAPTURE
    ? describeCapture(machine)
    : { ...describeCycle(machine), isOwn: isOrderOf(machine, id) }

export const isOrderOf = ({ boot_mode, cycle, ...machine }: Machine, id: string): boolean =>
  cycle.batch === id &&
  (MODES[boot_mode].does === 'list-disks' ||
    (isFlashMode(boot_mode) &&
      machine.bty_image_ref !== null &&
      machine.target_disk_serial !== null))

function describeCycle({ boot_mode, cycle }: Machine): OrderFacts {
  const { before } = cycle
  return {
    order: cycle.started_at,
    isOwn: false,
    isFinished: cycle.finished_at !== null,
    isDisarmed: cycle.disarmed_at !== null || cycle.disk_allowed_at !== null,
    hasFailed: cycle.failure !== null || cycle.loop_suspected_at !== null,
    hasBegun: cycle.planned || cycle.offered_at !== null || cycle.offers > 0,
    isPaused: cycle.paused_at !== null,
    finishedBefore: before === null || before.finished_at === null ? null : before.started_at,
    repeats: flashesAlways(boot_mode),
  }
}

export function isUnderWay(machine: Machine): boolean {
  const { isFinished, isDisarmed, hasFailed } = describeCycle(machine)
  return !isFinished && !isDisarmed && !hasFailed
}

function describeCapture({ capture }: Machine): OrderFacts | null {
  if (capture === null) return null
  return {
    order: capture.ordered_at,
    isOwn: false,
    isFinished: capture.result === 'done',
    isDisarmed: capture.result === 'cancelled',
    hasFailed: capture.result === 'failed',
    hasBegun: capture.planned_at !== null || capture.offers > 0,
    isPaused: false,
    finishedBefore: null,
    repeats: false,
  }
}

/** Null: it gave none, and is done. */
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

/** `order`: the one that the batch gave it; null: none. Null: it has that order no more. */
export function decideLeaving(
  before: Machine,
  order: string | null,
  isUndone: boolean,
): MemberState | null {
  const facts = describeCycle(before)
  const isOf = facts.order === order
  if (isUndone && !(isOf && hasFlashOrder(before))) return 'undone'
  if (!isOf) return null
  const state = decideMember({ order, refusal: null, left: null }, facts)
  if (state === 'done' || state === 'failed' || state === 'disarmed') return state
  return isUndone ? 'disarmed' : 'replaced'
}
