/** Decides what a write does as it runs: how zeros get onto the disk, whether comparing is worthwhile, which disks have stalled. */
import type { ZeroFacts } from '#engine/disk/rules/disk.ts'
import type { Frame, FrameMap } from '#engine/image/rules/frame-map.ts'

/**
 * `zero-out`: the kernel's write-zeroes without fallback (fallocate --punch-hole), which ends in an
 * error where the device cannot do it. `discard` and `zero-range`: loop devices alone. A discard
 * punches a hole into the backing file, so that a sparse file stays sparse (of real disks it promises
 * nothing); zero-range zeroes it in place, so that an allocated file stays allocated, which also takes
 * a fraction of the time. `write`: plain zeros.
 */
export const ZERO_METHODS = ['zero-out', 'zero-range', 'discard', 'write'] as const
export type ZeroMethod = (typeof ZERO_METHODS)[number]

export function decideZeroMethod({
  loop,
  discardMaxBytes,
  writeZeroesMaxBytes,
}: ZeroFacts): ZeroMethod {
  if (loop === 'allocated' && writeZeroesMaxBytes > 0) return 'zero-range'
  if (loop !== null && discardMaxBytes > 0) return 'discard'
  return writeZeroesMaxBytes > 0 ? 'zero-out' : 'write'
}

/** What a device was seen to do, in bytes per second; null before anything was measured. */
interface ZeroRates {
  readonly writing: number | null
  readonly zeroing: number | null
}

/** What a command costs however short the run: a process is started for it. */
const COMMAND_SECONDS = 0.001

/**
 * The command runs beside the copy and takes none of its processor time or memory bandwidth, so
 * that it may be this much slower than writing before it is the worse choice.
 */
const WORTH_OF_RUNNING_BESIDE = 2

/**
 * Whether a run of zeros goes by command. On most disks that is many times faster than writing; on
 * a very fast one it may not be. Until a speed is known the best is assumed of the command. Written
 * zeros are also read back when the flash is verified, at about the speed of writing.
 */
export function decideByCommand(
  { writing, zeroing }: ZeroRates,
  bytes: number,
  verifies: boolean,
): boolean {
  if (writing === null) return true
  const bySeconds = COMMAND_SECONDS + (zeroing === null ? 0 : bytes / zeroing)
  return bySeconds <= WORTH_OF_RUNNING_BESIDE * (bytes / writing) * (verifies ? 2 : 1)
}

/** What one command zeroes at once before a speed is known, and on a slow device. */
export const SHORT_RUN_BYTES = 128 * 1024 * 1024
const LONG_RUN_BYTES = 1024 * 1024 * 1024
/** What is under way when a flash is cancelled keeps the disk held for about so long. */
const LONG_RUN_SECONDS = 0.25

/**
 * The most bytes that one command zeroes, while another one is under way: each of them starts a
 * process. At most twice as many as the `last` one did, as a device may be fast at first alone.
 * `zeroing`: bytes per second.
 */
export const longestZeroRun = (zeroing: number | null, last: number): number =>
  Math.max(SHORT_RUN_BYTES, Math.min(LONG_RUN_BYTES, 2 * last, (zeroing ?? 0) * LONG_RUN_SECONDS))

/** Less than this may only have gone into a cache. */
const MIN_BYTES = 8 * 1024 * 1024

export function createBusyMeter() {
  let underWay = 0
  let since = 0
  let busySeconds = 0
  let doneBytes = 0
  return {
    begin(seconds: number): void {
      if (underWay === 0) since = seconds
      underWay += 1
    },
    end(seconds: number, bytes: number): void {
      underWay -= 1
      doneBytes += bytes
      busySeconds += seconds - since
      since = seconds
    },
    /** Bytes per second; null until enough was done to measure. */
    get rate(): number | null {
      return doneBytes < MIN_BYTES || busySeconds <= 0 ? null : doneBytes / busySeconds
    },
  }
}

/** Frames that are read before it is decided; those that match are not read again. */
const MAX_SAMPLES = 16

/** Frames with data all over the image that may stay on the disk as they are. */
export function chooseSamples(map: FrameMap, canStay: (frame: Frame) => boolean): readonly Frame[] {
  const step = Math.max(1, map.count / (MAX_SAMPLES * 2))
  const candidates = Array.from({ length: Math.ceil(map.count / step) }, (_, n) =>
    findNext(map, Math.floor(n * step), canStay),
  ).filter((frame) => frame !== null)
  const unique = [...new Map(candidates.map((frame) => [frame.index, frame])).values()]
  const every = Math.max(1, unique.length / MAX_SAMPLES)
  return unique.filter((_, n) => Math.floor(n / every) !== Math.floor((n - 1) / every))
}

/** Among a few frames from there on: an image may be zeros for a long way. */
function findNext(map: FrameMap, from: number, canStay: (frame: Frame) => boolean): Frame | null {
  for (let index = from; index < Math.min(map.count, from + MAX_SAMPLES); index += 1) {
    const frame = map.at(index)
    if (!frame.isZero && canStay(frame)) return frame
  }
  return null
}

/**
 * A frame that matches costs one read; one that differs costs that read on top of its write and of the
 * read that verifies it. With half of them there, as much is saved as is lost, and half is not fetched.
 */
export const isWorthwhile = (sampled: number, matching: number): boolean => matching * 2 >= sampled

export interface SharingDisk {
  /** Whether it holds memory that the others wait for. */
  readonly isHolding: boolean
  /** How long it has done nothing while another disk waited. */
  readonly idleMs: number
}

/** By their indexes. None unless a disk is better off: what stops all of them, such as their hub, fails none. */
export function decideStalled(disks: readonly SharingDisk[], limitMs: number): readonly number[] {
  const stalled = disks.flatMap(({ isHolding, idleMs }, index) =>
    isHolding && idleMs >= limitMs ? [index] : [],
  )
  const goesOn = disks.some(({ isHolding, idleMs }) => !isHolding || idleMs < limitMs / 2)
  return goesOn ? stalled : []
}
