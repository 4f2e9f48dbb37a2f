/** Current line: how operators' edits change a machine's record ("Transitions", docs/decisions/0006). */
import { MODES, flashesOnce, isFlashMode } from './boot-mode.ts'
import { createOrder, endOrder, isPending, type CaptureOrder } from '#engine/capture/rules/order.ts'
import { fieldError, type FieldError } from '#kit/foundation/field-error.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  createCycle,
  createMachine,
  hasUnfinishedFlash,
  isHeldBack,
  targetOf,
  type Cycle,
  type Machine,
  sortLabels,
} from './machine.ts'
import { nameAmong, pickDisk, type DiskPick } from '#engine/inventory/rules/machine.ts'
import { findDiskMismatch, renderDiskMismatch } from './target.ts'
import type { MachineUpsert } from './upsert.ts'
import { isWaiting } from '#fleet/once/rules/once-order.ts'

/** Keeps that a flash may be under way, and the machine's place in line. */
export function startCycle(
  machine: Machine,
  now: string,
  carried = hasUnfinishedFlash(machine),
): Machine {
  const { cycle } = machine
  // A flash without an end stays the one that reports are about; a cycle that its machine never
  // asked for has none.
  const isUnheard = (carried && !cycle.planned) || cycle.begun_at === null
  const before =
    isUnheard && cycle.before !== null
      ? cycle.before
      : { started_at: cycle.started_at, finished_at: cycle.finished_at }
  return {
    ...machine,
    saw_flasher_boot: false,
    updated_at: now,
    cycle: { ...createCycle(now), carried, before, queued_at: cycle.queued_at },
  }
}

/**
 * All fields of the body replace the record's, but an absent name or template stays. Only another
 * mode, image or disk starts a new cycle. `before` null: a new machine. The refusal says why it
 * cannot be armed.
 */
export function applyUpsert(
  before: Machine | null,
  mac: Mac,
  upsert: MachineUpsert,
  now: string,
): Result<Machine, readonly FieldError[]> {
  const machine = before ?? createMachine(mac, upsert.boot_mode, now)
  const picked = toFields(
    pickDisk(upsert.target_disk_serial, targetOf(machine), machine.known_disks),
  )
  const isSame = isSameIntent(machine, { ...upsert, ...picked })
  const refusal = isSame || !isFlashMode(upsert.boot_mode) ? null : findArmRefusal(machine)
  if (refusal !== null) return refuse([refusal])
  // A mode that flashes nothing had it boot its disk: it is armed as one that nobody has begun.
  const isAnew = !isFlashMode(machine.boot_mode) && isFlashMode(upsert.boot_mode)
  const carried = !isAnew && hasUnfinishedFlash(machine)
  const begun = isSame ? machine : startCycle(machine, now, carried)
  return accept({
    ...begun,
    ...upsert,
    ...picked,
    channel: nextChannel(begun, upsert, isSame),
    labels: sortLabels(upsert.labels),
    updated_at: now,
  })
}

/** An image that was assigned directly clears the channel. */
function nextChannel(
  { channel }: Machine,
  { bty_image_ref: ref, boot_mode }: MachineUpsert,
  isSame: boolean,
): Machine['channel'] {
  const isOrder = !isSame && isFlashMode(boot_mode)
  return channel === null || channel.ref !== ref || isOrder ? null : channel
}

const toFields = (target: DiskPick | null) => ({
  target_disk_serial: target?.name ?? null,
  target_disk_seen: target?.seen ?? null,
})

const findArmRefusal = ({ locked, capture }: Machine): FieldError | null =>
  locked
    ? fieldError(['boot_mode'], LOCKED, 'locked')
    : isPending(capture)
      ? fieldError(['boot_mode'], CAPTURING, 'capture')
      : null

/** Whether or not its last flash has ended. */
export function flashAgain(machine: Machine, now: string): Result<Machine, string> {
  if (machine.locked) return refuse(LOCKED)
  if (isPending(machine.capture)) return refuse(CAPTURING)
  if (!isFlashMode(machine.boot_mode)) return refuse('Not in a flash mode.')
  if (machine.bty_image_ref === null) return refuse('No image assigned.')
  if (machine.target_disk_serial === null) return refuse('No target disk selected.')
  return accept(startCycle(machine, now))
}

/**
 * For a flash that may have been cut off, when an operator knows better. For this cycle, nobody
 * gets a plan to flash; a machine without an unfinished flash is refused.
 */
export function allowDisk(machine: Machine, now: string): Result<Machine, string> {
  if (!hasUnfinishedFlash(machine)) {
    return refuse('There is no unfinished flash to override.')
  }
  const cycle: Cycle = {
    ...machine.cycle,
    offers: 0,
    offered_at: null,
    planned: false,
    carried: false,
    loop_suspected_at: null,
    failure: null,
    queued_at: null,
    disk_allowed_at: now,
  }
  return accept({ ...machine, cycle, updated_at: now })
}

export function refreshInventory(machine: Machine, now: string): Result<Machine, string> {
  if (isHeldBack(machine)) return refuse(UNFINISHED)
  return MODES[machine.boot_mode].does === 'list-disks'
    ? accept(startCycle(machine, now))
    : refuse('Its boot mode is not flasher-inventory; flash modes list the disks each time.')
}

interface CaptureFields extends Pick<CaptureOrder, 'name' | 'generalize'> {
  /** Null: the disk that is selected, or the only one. */
  readonly disk_serial: string | null
}

/** Orders a capture. What would be flashed is not captured: a failure must not cost its content. */
export function orderCapture(
  machine: Machine,
  { disk_serial, ...fields }: CaptureFields,
  now: string,
): Result<Machine, string> {
  const { known_disks: disks } = machine
  const refusal = findCaptureRefusal(machine)
  if (refusal !== null) return refuse(refusal)
  const target = findCaptured(machine, disk_serial?.trim() || null)
  if (target === null) return refuse('Select the disk to capture.')
  const { name: serial, seen } = target
  const mismatch = findDiskMismatch(disks, target, null)
  if (mismatch !== null) return refuse(renderDiskMismatch(mismatch, serial))
  const picked = { disk_serial: serial, ...(seen === null ? {} : { disk_seen: seen }) }
  const capture = createOrder({ ...fields, ...picked }, now)
  return accept({ ...machine, capture, updated_at: now })
}

function findCaptureRefusal(machine: Machine): string | null {
  const { boot_mode, cycle, capture } = machine
  if (isPending(capture)) return 'A capture is already ordered. Cancel it first.'
  if (hasUnfinishedFlash(machine)) return UNFINISHED
  if (isWaiting(machine.once)) return BOOTS_ONCE
  // A late end of the flash before would arm the next one in a mode that flashes always.
  const isDisarmed =
    flashesOnce(boot_mode) &&
    [cycle.finished_at, cycle.disk_allowed_at, cycle.disarmed_at].some((at) => at !== null)
  return isFlashMode(boot_mode) && !isDisarmed
    ? 'It is set to be flashed. Choose another boot mode first.'
    : null
}

function findCaptured(machine: Machine, named: string | null): DiskPick | null {
  const disks = machine.known_disks ?? []
  const [disk, ...others] = disks
  const only = disk === undefined || others.length > 0 ? null : nameAmong(disk, disks)
  const target = targetOf(machine)
  return named === null && target !== null ? target : pickDisk(named ?? only, target, disks)
}

/** An upload that is under way goes on until its machine asks the server again. */
export const cancelCapture = (machine: Machine, now: string): Result<Machine, string> =>
  isPending(machine.capture)
    ? accept({
        ...machine,
        capture: endOrder(machine.capture, 'cancelled', 'An operator cancelled it.', now),
        updated_at: now,
      })
    : refuse('No capture is ordered.')

export const BOOTS_ONCE = 'It is set to boot something else once. Cancel that first.'
const CAPTURING =
  'A capture is ordered. Cancel it, or wait for its end, before you flash the machine.'
const UNFINISHED =
  'A flash never finished, so the disk may be half written. Flash it again, or confirm that the disk is intact with "Boot its disk anyway" (action boot-disk).'
const LOCKED = 'Locked. Unlock the machine to flash it.'

const isSameIntent = (
  machine: Machine,
  upsert: MachineUpsert & Pick<Machine, 'target_disk_seen'>,
): boolean =>
  machine.boot_mode === upsert.boot_mode &&
  machine.bty_image_ref === upsert.bty_image_ref &&
  machine.target_disk_serial === upsert.target_disk_serial &&
  machine.target_disk_seen === upsert.target_disk_seen
