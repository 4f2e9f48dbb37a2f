/** Measures a write: progress events with the rate and the time left of the last seconds, and how long each part of it was waited for. */
import type { Bottleneck, Waited, WaitedFor, WriteProgress } from './rules/flash-plan.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'
import { createPace } from '#kit/foundation/size.ts'

interface MeterOptions {
  readonly phase: WriteProgress['phase']
  /** What bytesDone counts up to; null where it is not known. */
  readonly totalBytes: number | null
  /** What bytesRead counts up to: the time left when the total is not known. */
  readonly sourceBytes: number | null
  /** The bytes of the image as stored that were read by now. */
  readonly bytesRead: () => number
  /** What came from each source of the image; absent: progress does not mention it. */
  readonly shares?: (() => readonly SourceShare[]) | undefined
  /** The bytes that are on the disk before anything is added; absent: 0. */
  readonly bytesDone?: number
  /** Whether bytes that are there already are counted apart; absent: no. */
  readonly isDelta?: boolean
  /** The bottleneck at each look; absent: progress does not mention it. */
  readonly bottleneck?: () => Bottleneck | null
}

/** Rates are in bytes per second, the time left is in seconds. */
export function createMeter(options: MeterOptions) {
  const { phase, totalBytes, sourceBytes, bottleneck, shares } = options
  let { bytesDone = 0 } = options
  let bytesKept = options.isDelta === true ? 0 : null
  const reading = createPace()
  const doing = createPace()
  return {
    add(bytes: number) {
      bytesDone += bytes
    },
    /** As `add`, of bytes that lay there already. */
    keep(bytes: number) {
      bytesDone += bytes
      bytesKept = (bytesKept ?? 0) + bytes
    },
    snapshot(note?: string): { readonly event: 'writing' } & WriteProgress {
      const bytesRead = options.bytesRead()
      const seconds = performance.now() / 1000
      // A last sector is filled up: the image's own size is what counts.
      const done = totalBytes === null ? bytesDone : Math.min(bytesDone, totalBytes)
      reading.add(seconds, bytesRead)
      doing.add(seconds, done)
      const eta = totalBytes === null ? reading.eta(sourceBytes) : doing.eta(totalBytes)
      return {
        event: 'writing',
        phase,
        ...(note === undefined ? {} : { note }),
        bytes_read: bytesRead,
        bytes_written: done,
        total_bytes: totalBytes,
        rate: Math.round(doing.rate),
        eta_seconds: eta === null ? null : Math.ceil(eta),
        ...(bytesKept === null ? {} : { bytes_kept: bytesKept }),
        ...(shares === undefined ? {} : { sources: shares() }),
        ...(bottleneck === undefined ? {} : { bottleneck: bottleneck() }),
      }
    },
  }
}

/** Seconds. */
const now = () => performance.now() / 1000

export type Waits = ReturnType<typeof createWaits>

export function createWaits() {
  const clocks = { disk: createClock(), filling: createClock(), source: createClock() }
  let since = now()
  return {
    /** The same promise's outcome; its time counts. */
    async during<Value>(kind: keyof Waited, wait: Promise<Value>): Promise<Value> {
      clocks[kind].begin()
      try {
        return await wait
      } finally {
        clocks[kind].end()
      }
    },
    /** What was waited since the last look. */
    snapshot(): WaitedFor {
      const { disk, filling, source } = clocks
      const span = now() - since
      since = now()
      return { disk: disk.take(), filling: filling.take(), source: source.take(), span }
    },
  }
}

/** Runs while at least one wait is under way. */
function createClock() {
  let waiting = 0
  let since = 0
  let spent = 0
  const settle = () => {
    if (waiting > 0) spent += now() - since
    since = now()
  }
  return {
    begin() {
      settle()
      waiting += 1
    },
    end() {
      settle()
      waiting -= 1
    },
    take() {
      settle()
      const taken = spent
      spent = 0
      return taken
    },
  }
}
