/** Current line: the queue of machines when only a few may flash at a time (`[pxe] max_flashes`). */
import { epochOf } from '../../../kit/foundation/instants.ts'
import { isFlashMode, type Machine } from './machine.ts'

/** The settings of section `[pxe]` that are about the line; the names are theirs. */
export interface QueueRules {
  /** 0: any number. */
  readonly max_flashes: number
  /** Seconds without a contact after which a flashing machine's place goes to the next. */
  readonly flash_silence: number
}

/** How long a machine in line sleeps before it asks again. */
export const WAIT_SECONDS = 20
/** Who did not ask for so long has left the line: several turns, and a slow boot. */
const LINE_PATIENCE = 120

/** Where a machine stands that has to wait. */
export interface QueuePosition {
  /** From 1: the next one. */
  readonly place: number
  /** How many wait, this one among them. */
  readonly waiting: number
  readonly flashing: number
}

/** On the machine's screen, after "waits:"; with what stands before it, within 80 columns. */
export const renderQueuePosition = ({ place, waiting, flashing }: QueuePosition): string =>
  `place ${place} of ${waiting}, ${flashing} ${flashing === 1 ? 'is' : 'are'} being flashed`

/** A flash was offered, nothing ended it, and the machine was heard of: until then it has its place. */
export function holdsFlashSlot(
  machine: Machine,
  now: string,
  { flash_silence }: QueueRules,
): boolean {
  const { boot_mode, cycle } = machine
  const isBegun = cycle.offers > 0 || cycle.planned
  const isUnderWay =
    isBegun && [cycle.finished_at, cycle.failure, cycle.disarmed_at].every((end) => end === null)
  if (!isFlashMode(boot_mode) || !isUnderWay || cycle.queued_at !== null) return false
  return isHeardOf(machine, now, flash_silence)
}

export const isInLine = (machine: Machine, now: string): boolean =>
  isFlashMode(machine.boot_mode) &&
  machine.cycle.queued_at !== null &&
  isHeardOf(machine, now, LINE_PATIENCE)

/** When a machine that has to wait now began to wait; one that had left the line begins anew. */
export const decideQueuedAt = (machine: Machine, now: string): string =>
  isInLine(machine, now) ? (machine.cycle.queued_at ?? now) : now

/** Who came first is first. */
export const compareQueued = (a: Machine, b: Machine): number => {
  const [first, second] = [a.cycle.queued_at ?? '', b.cycle.queued_at ?? '']
  if (first !== second) return first < second ? -1 : 1
  return a.mac < b.mac ? -1 : 1
}

/**
 * What was seen far ahead was seen by a clock that has been set back since: the machine is heard of
 * again with its next contact, and one that is gone keeps no place until that time comes.
 */
const isHeardOf = ({ last_seen_at, updated_at }: Machine, now: string, seconds: number): boolean =>
  Math.abs(epochOf(now) - epochOf(last_seen_at ?? updated_at)) < seconds * 1000
