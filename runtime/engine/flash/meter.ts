/** Turns byte counts into progress events: rate and time left from the last seconds. */
import type { Bottleneck } from './rules/bottleneck.ts'
import type { WriteProgress } from './rules/flash.ts'
import { createPace } from '../../kit/foundation/pace.ts'

interface MeterOptions {
  readonly phase: WriteProgress['phase']
  /** What bytesDone counts up to; null where it is not known. */
  readonly totalBytes: number | null
  /** What bytesRead counts up to: the time left when the total is not known. */
  readonly sourceBytes: number | null
  /** Of the image as stored, by now. */
  readonly bytesRead: () => number
  /** Of the disk, before anything was added; absent: 0. */
  readonly bytesDone?: number
  /** Whether bytes that are there already are counted apart; absent: no. */
  readonly isDelta?: boolean
  /** Asked at each look; absent: progress does not mention it. */
  readonly bottleneck?: () => Bottleneck | null
}

export function createMeter(options: MeterOptions) {
  const { phase, totalBytes, sourceBytes, bottleneck } = options
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
    /** The progress by now. */
    look(note?: string): { readonly event: 'writing' } & WriteProgress {
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
        ...(bottleneck === undefined ? {} : { bottleneck: bottleneck() }),
      }
    },
  }
}
