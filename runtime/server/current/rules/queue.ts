/** Current line: the queue of machines when only a few may flash at a time (`[pxe] max_flashes`). */
import { isFlashMode } from './boot-mode.ts'
import { type Machine } from './machine.ts'

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
  /** It was not in line before. */
  readonly isNew: boolean
}

/** On the machine's screen, after "waits:"; with what stands before it, within 80 columns. */
export const renderQueuePosition = ({ place, waiting, flashing }: QueuePosition): string =>
  `place ${place} of ${waiting}, ${flashing} ${flashing === 1 ? 'is' : 'are'} being flashed`

/**
 * A flash was offered, nothing ended it, and the machine was heard of: until then it has its place.
 * `silence`: milliseconds since it was heard of, of a clock that nobody sets.
 */
export function holdsFlashSlot(
  machine: Machine,
  silence: number,
  { flash_silence }: QueueRules,
): boolean {
  const { boot_mode, cycle } = machine
  const isBegun = cycle.offers > 0 || cycle.planned
  const isUnderWay =
    isBegun && [cycle.finished_at, cycle.failure, cycle.disarmed_at].every((end) => end === null)
  if (!isFlashMode(boot_mode) || !isUnderWay || cycle.queued_at !== null) return false
  return silence < flash_silence * 1000
}

/** `silence`: as above. */
export const isInLine = ({ boot_mode, cycle }: Machine, silence: number): boolean =>
  isFlashMode(boot_mode) && cycle.queued_at !== null && silence < LINE_PATIENCE * 1000

/** When a machine that has to wait now began to wait; one that had left the line begins anew. */
export const decideQueuedAt = (
  { cycle }: Machine,
  position: QueuePosition | null,
  now: string,
): string => (position?.isNew === false ? (cycle.queued_at ?? now) : now)

/** Who came first is first: all that a restart leaves of the order. */
export const compareQueued = (a: Machine, b: Machine): number => {
  const [first, second] = [a.cycle.queued_at ?? '', b.cycle.queued_at ?? '']
  if (first !== second) return first < second ? -1 : 1
  return a.mac < b.mac ? -1 : 1
}
