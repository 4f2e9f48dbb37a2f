/** Current line: orders that a restored state brings back are taken away; disks that may be half written stay held back. */
import { flashesOnce, isFlashMode } from './boot-mode.ts'
import { endOrder, isPending } from '../../../engine/capture/rules/order.ts'
import { isHalfWritten, isHeldBack, type Cycle, type Machine } from './machine.ts'

/** It would be flashed or captured with nobody asked, now or once it is unlocked. */
function hasOrder({ boot_mode, bty_image_ref, target_disk_serial, cycle, capture }: Machine) {
  if (isPending(capture)) return true
  const isEnded = flashesOnce(boot_mode) && cycle.finished_at !== null
  // In flash-always a late end begins the next flash, also where the disk was to be booted.
  const isAllowed = flashesOnce(boot_mode) && cycle.disk_allowed_at !== null
  const isOpen = !isEnded && !isAllowed && cycle.disarmed_at === null
  return isFlashMode(boot_mode) && isOpen && bty_image_ref !== null && target_disk_serial !== null
}

/**
 * Takes the orders of a machine away, at the ISO time `now`. Mode, image and disk stay; nothing is
 * planned until an operator says "Flash again", or gives it another mode, image or disk. Returns the
 * very same record where there is no order.
 */
export function disarm(machine: Machine, now: string): Machine {
  if (!hasOrder(machine)) return machine
  const { capture, cycle } = machine
  return {
    ...machine,
    capture: isPending(capture) ? endOrder(capture, 'cancelled', RESTORED, now) : capture,
    cycle: isFlashMode(machine.boot_mode)
      ? { ...cycle, disarmed_at: now, queued_at: null, loop_suspected_at: null, offers: 0 }
      : cycle,
    updated_at: now,
  }
}

const RESTORED = 'The state of the server was replaced by an older one, so the order was cancelled.'

/**
 * Returns the record to store for a machine of a restored state whose disk may be half written by what
 * is known now: it stays held back, whatever the older state says of it. `restored` null: that state
 * has no such machine. Returns null where nothing is to be stored.
 */
export function keepHeldBack(
  restored: Machine | null,
  present: Machine,
  now: string,
): Machine | null {
  if (!isHalfWritten(present)) return null
  if (restored === null) return disarm({ ...present, cycle: hold(present.cycle, now) }, now)
  if (isHeldBack(restored)) return null
  const { cycle } = present
  const before = cycle.planned ? { ...cycle, finished_at: null } : cycle.before
  const isSame = before?.started_at === restored.cycle.started_at
  const held = hold(restored.cycle, now)
  return {
    ...restored,
    cycle: isSame || before === null ? held : { ...held, before: pickCycle(before) },
    updated_at: now,
  }
}

const hold = (cycle: Cycle, now: string): Cycle => ({
  ...cycle,
  carried: true,
  disarmed_at: cycle.disarmed_at ?? now,
  queued_at: null,
})

/** The flash that is under way may still report its end, by the token of its cycle. */
const pickCycle = ({ started_at, finished_at }: NonNullable<Cycle['before']>) => ({
  started_at,
  finished_at,
})

/** Returns what a list calls the machine; null: its address is all there is. */
export const nameMachine = ({ name, hostname }: Machine): string | null => name ?? hostname

/** Why its plan is no flash, for the person in front of the machine. */
export const DISARMED =
  'An older state of the server was restored, which arms no machine: choose Flash again on the server.'

export const HELD_BACK =
  'A flash of this machine began and never reported its end, and an older state of the server was restored since: its disk may be half written. Flash it here, or choose Flash again on the server.'
