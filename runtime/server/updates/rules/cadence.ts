/** Decides when a live channel sends: at once after a pause, then at a rate that depends on its size. */

const MIN_MS = 150
const MAX_MS = 10_000
/** For all listeners together. */
const BYTES_PER_MS = 50_000

/** Milliseconds between rounds: they take at most a fifth of the time. */
export const intervalOf = (sentBytes: number, tookMs: number): number =>
  Math.min(MAX_MS, Math.max(MIN_MS + Math.round(sentBytes / BYTES_PER_MS), tookMs * 5))

/** Milliseconds; 0: now. */
export const delayUntilNext = (lastAt: number, now: number, interval: number): number =>
  Math.max(0, Math.min(interval, lastAt + interval - now))
