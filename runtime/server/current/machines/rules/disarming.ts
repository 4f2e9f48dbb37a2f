/** Current line: orders that are taken away, by an older state, a person or the time, or that are paused; disks that may be half written stay held back. */
import { flashesOnce, isFlashMode } from './boot-mode.ts'
import { endOrder, isPending } from '#engine/capture/rules/order.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  hasUnfinishedFlash,
  isHalfWritten,
  isHeldBack,
  type Cycle,
  type DisarmCause,
  type Machine,
} from './machine.ts'
import type { Surroundings } from './surroundings.ts'
import { isWaiting } from '#fleet/once/rules/once-order.ts'

/** It would be flashed or captured with nobody asked, now or once it is unlocked. */
export const hasOrder = (machine: Machine): boolean =>
  isPending(machine.capture) || hasFlashOrder(machine)

/** It would be flashed with nobody asked, now or once it is unlocked. */
export function hasFlashOrder({
  boot_mode,
  bty_image_ref,
  target_disk_serial,
  cycle,
}: Machine): boolean {
  const isEnded = flashesOnce(boot_mode) && cycle.finished_at !== null
  // In flash-always a late end begins the next flash, also where the disk was to be booted.
  const isAllowed = flashesOnce(boot_mode) && cycle.disk_allowed_at !== null
  const isOpen = !isEnded && !isAllowed && cycle.disarmed_at === null
  return isFlashMode(boot_mode) && isOpen && bty_image_ref !== null && target_disk_serial !== null
}

/**
 * Keeps mode, image and disk; nothing is planned until an operator says "Flash again", or sets
 * another mode, image or disk. Returns the same record without an order.
 */
export function disarm(machine: Machine, now: string, by: DisarmCause = 'restored'): Machine {
  if (isWaiting(machine.once)) return disarm({ ...machine, once: null, updated_at: now }, now, by)
  if (!hasOrder(machine)) return machine
  const { capture, cycle } = machine
  return {
    ...machine,
    capture: isPending(capture) ? endOrder(capture, 'cancelled', CANCELLED[by], now) : capture,
    cycle: isFlashMode(machine.boot_mode)
      ? {
          ...cycle,
          disarmed_at: now,
          disarmed_by: by,
          queued_at: null,
          loop_suspected_at: null,
          offers: 0,
        }
      : cycle,
    updated_at: now,
  }
}

const CANCELLED: Readonly<Record<DisarmCause, string>> = {
  restored: 'An older state of the server was restored, so the order was cancelled.',
  operator: 'An operator disarmed the machine.',
  expired: 'The order expired.',
}

/** Refused once its flash has begun: nobody takes back what its live system writes. */
export function disarmByHand(machine: Machine, now: string): Result<Machine, string> {
  if (hasUnfinishedFlash(machine)) return refuse(BEGUN)
  return hasOrder(machine) || isWaiting(machine.once)
    ? accept(disarm(machine, now, 'operator'))
    : refuse('Not armed.')
}

const BEGUN =
  'Its flash has started and cannot be undone. Wait for its end, or confirm that the disk is intact with "Boot its disk anyway" (action boot-disk).'

/** Refused once its flash has begun. */
export function pauseOrder(machine: Machine, now: string): Result<Machine, string> {
  if (hasUnfinishedFlash(machine)) return refuse('Its flash has started.')
  if (!hasFlashOrder(machine)) return refuse('Not armed.')
  if (machine.cycle.paused_at !== null) return refuse('Paused already.')
  return accept({
    ...machine,
    cycle: { ...machine.cycle, paused_at: now, queued_at: null },
    updated_at: now,
  })
}

export function resumeOrder(machine: Machine, now: string): Result<Machine, string> {
  if (machine.cycle.paused_at === null) return refuse('Not paused.')
  return accept({ ...machine, cycle: { ...machine.cycle, paused_at: null }, updated_at: now })
}

/** Also within the millisecond of the order before. */
export const beginsOrder = (before: Machine | null, { cycle }: Machine): boolean =>
  before?.cycle !== cycle && cycle.disarmed_at === null && cycle.disk_allowed_at === null

const HOUR_MS = 3_600_000

/** `hours` after `now`; 0: no limit. Earlier orders, and those of flash-always, never end. */
export function limitOrder(
  before: Machine | null,
  after: Machine,
  hours: number,
  now: string,
): Machine {
  if (
    hours <= 0 ||
    !beginsOrder(before, after) ||
    !flashesOnce(after.boot_mode) ||
    !hasFlashOrder(after)
  )
    return after
  const expires_at = Temporal.Instant.from(now)
    .add({ milliseconds: Math.round(hours * HOUR_MS) })
    .toString({ fractionalSecondDigits: 3 })
  return { ...after, cycle: { ...after.cycle, expires_at } }
}

/** Not once it has been carried out in part. */
export const canExpire = (machine: Machine): boolean =>
  machine.cycle.expires_at !== null &&
  machine.cycle.offered_at === null &&
  !hasUnfinishedFlash(machine) &&
  flashesOnce(machine.boot_mode) &&
  hasFlashOrder(machine)

export const expireOrder = (machine: Machine, now: string): Machine =>
  canExpire(machine) ? disarmFlash(machine, now) : machine

/** A capture that is ordered as well stays ordered, and so does what is booted once. */
function disarmFlash(machine: Machine, now: string): Machine {
  const { capture, once } = machine
  return { ...disarm({ ...machine, capture: null, once: null }, now, 'expired'), capture, once }
}

/** Why an open order is not carried out now; null: it is. */
export function findStop(
  machine: Machine,
  { now, isPast }: Pick<Surroundings, 'now' | 'isPast'>,
): 'paused' | 'expired' | null {
  const { paused_at, expires_at } = machine.cycle
  if (paused_at === null && expires_at === null) return null
  if (expires_at !== null && canExpire(machine) && (isPast?.(expires_at) ?? expires_at <= now)) {
    return 'expired'
  }
  return paused_at === null || isHalfWritten(machine) ? null : 'paused'
}

/**
 * Restores the values from before an edit and arms nothing: an order that the edit touched comes
 * back as taken away. `present`: the record as the edit left it; null: deleted. Returns `present`
 * itself where the edit only took an order away.
 */
export function undoEdit(before: Machine, present: Machine | null, now: string): Machine {
  const { last_seen_at, last_seen_ip } = present ?? before
  const once = keepOnce(before, present)
  const restored = { ...before, once, last_seen_at, last_seen_ip, updated_at: now }
  if (present === null) return disarm(restored, now, 'operator')
  const isUntouched = orderOf(present) === orderOf(before)
  const undone = isUntouched ? restored : disarm(restored, now, 'operator')
  return valuesOf(undone) === valuesOf(present) ? present : undone
}

/** What was to be booted once stays as it is, and never comes back. */
const keepOnce = (before: Machine, present: Machine | null) =>
  before.once?.ordered_at === present?.once?.ordered_at ? (present?.once ?? null) : null

/** Without when an order was taken away, by whom, and in which words. */
const valuesOf = ({ capture, cycle, ...machine }: Machine): string =>
  JSON.stringify({
    ...machine,
    updated_at: null,
    armed_by: null,
    capture: capture && { ...capture, reason: null, ended_at: null },
    cycle: { ...cycle, disarmed_at: cycle.disarmed_at !== null },
  })

const orderOf = (machine: Machine): string =>
  JSON.stringify([
    machine.boot_mode,
    machine.bty_image_ref,
    machine.target_disk_serial,
    machine.target_disk_seen,
    machine.locked,
    machine.cycle,
    machine.capture,
  ])

/**
 * Holds a disk back that may be half written by what is known now, whatever the restored state
 * says. `restored` null: that state has no such machine. Null: nothing is to be stored.
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
  disarmed_by: cycle.disarmed_by ?? 'restored',
  queued_at: null,
})

/** The flash that is under way may still report its end, by the token of its cycle. */
const pickCycle = ({ started_at, finished_at }: NonNullable<Cycle['before']>) => ({
  started_at,
  finished_at,
})

export const nameMachine = ({ name, hostname }: Machine): string | null => name ?? hostname

export const DISARMED_RULES = {
  restored: 'disarmed',
  operator: 'withdrawn',
  expired: 'expired',
} as const satisfies Readonly<Record<DisarmCause, string>>
export type DisarmedRule = (typeof DISARMED_RULES)[DisarmCause]
export type StopRule = DisarmedRule | 'paused'

export const STOPPED: Readonly<Record<StopRule, string>> = {
  disarmed:
    'An older state of the server was restored, so this machine is disarmed. Arm it again on the server.',
  withdrawn: 'An operator disarmed this machine. Arm it again on the server to flash it.',
  expired: 'The order to flash this machine has expired. Arm it again on the server.',
  paused: 'The batch of this machine is paused on the server.',
}

export const HELD_BACK =
  'A flash of this machine never reported its end, and the machine was disarmed since. Its disk may be half written. Flash it here, or arm it again on the server.'
