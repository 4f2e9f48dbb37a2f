/** Current line: the queue of machines when only a few may flash at a time (`[pxe] max_flashes`). */
import { isFlashMode } from './boot-mode.ts'
import { type Machine } from './machine.ts'

export interface QueueRules {
  /** 0: any number. */
  readonly max_flashes: number
  /** Seconds without a contact after which a flashing machine's place goes to the next. */
  readonly flash_silence: number
}

export const WAIT_SECONDS = 20
/** In seconds: several turns and a slow boot. */
const LINE_PATIENCE = 120

export interface QueuePosition {
  /** From 1, which is next. */
  readonly place: number
  readonly waiting: number
  readonly flashing: number
  readonly isNew: boolean
}

/** At most 80 columns with "waits:" before it. */
export const renderQueuePosition = ({ place, waiting, flashing }: QueuePosition): string =>
  `place ${place} of ${waiting}, ${flashing} ${flashing === 1 ? 'is' : 'are'} being flashed`

/** Offered a flash that has not ended, and heard of recently. `silence`: ms, monotonic. */
export function holdsFlashSlot(
  machine: Machine,
  silence: number,
  { flash_silence }: QueueRules,
): boolean {
  const { boot_mode, cycle } = machine
  const isBegun = cycle.offers > 0 || cycle.planned
  const paused_at = cycle.planned ? null : cycle.paused_at
  const isUnderWay =
    isBegun &&
    [cycle.finished_at, cycle.failure, cycle.disarmed_at, paused_at].every((end) => end === null)
  if (!isFlashMode(boot_mode) || !isUnderWay || cycle.queued_at !== null) return false
  return silence < flash_silence * 1000
}

/** `silence`: ms, monotonic. */
export const isWaiting = ({ boot_mode, cycle }: Machine, silence: number): boolean =>
  isFlashMode(boot_mode) && cycle.queued_at !== null && silence < LINE_PATIENCE * 1000

/** An ISO time; a machine that had left the queue begins anew. */
export const decideQueuedAt = (
  { cycle }: Machine,
  position: QueuePosition | null,
  now: string,
): string => (position?.isNew === false ? (cycle.queued_at ?? now) : now)

/** After a restart, this is all that is left of the order. */
export const compareQueued = (a: Machine, b: Machine): number => {
  const [first, second] = [a.cycle.queued_at ?? '', b.cycle.queued_at ?? '']
  if (first !== second) return first < second ? -1 : 1
  return a.mac < b.mac ? -1 : 1
}
