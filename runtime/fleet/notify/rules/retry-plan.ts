/** Decides when a message is tried again, and when it is given up. */

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A message that nobody takes for so long is given up. */
export const GIVE_UP_MS = 24 * HOUR_MS
/** The pauses after the first attempts; the last one is repeated. */
const PAUSES_MS: readonly number[] = [
  10_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  3 * HOUR_MS,
]
const MAX_PAUSE_MS = Math.max(...PAUSES_MS)
/** A receiver may ask for a longer pause than ours, up to this. */
const MAX_OBEYED_MS = HOUR_MS

interface Attempt {
  /** How many attempts there were, this one included. */
  readonly attempts: number
  /** When the message was queued; milliseconds since the epoch. */
  readonly queuedAt: number
  readonly now: number
  /** What the receiver asked for, milliseconds; null: nothing. */
  readonly wanted?: number | null
}

/**
 * Returns when the next attempt is due, in milliseconds since the epoch; null: the message is given
 * up. A clock that was set back makes it wait no longer than the pause.
 */
export function planRetry({ attempts, queuedAt, now, wanted = null }: Attempt): number | null {
  if (now - queuedAt >= GIVE_UP_MS) return null
  const usual = PAUSES_MS[Math.min(attempts, PAUSES_MS.length) - 1] ?? HOUR_MS
  const pause = Math.max(usual, Math.min(wanted ?? 0, MAX_OBEYED_MS))
  return Math.min(now + pause, Math.max(now, queuedAt + GIVE_UP_MS))
}

/** Says whether an attempt is due; a time far ahead is one that a clock set back has left behind. */
export const isDue = (nextAt: number, now: number): boolean =>
  nextAt <= now || nextAt > now + MAX_PAUSE_MS
