/** Decides how often and after which delay a broken download is retried. */

/** Tries in a row that bring not one byte. */
export const TRIES_WITHOUT_PROGRESS = 5
/** A hasty reader has another server to ask. */
export const countTries = (isHasty: boolean): number => (isHasty ? 1 : TRIES_WITHOUT_PROGRESS)

const LONGEST_WAIT_MS = 15_000
/** A server may ask for a longer wait than ours, up to this. */
const LONGEST_OBEYED_MS = 60_000

/**
 * Returns the milliseconds before try number `tries` (1 is the first repeat): doubling, and spread
 * by `random` (0 to 1), so that a rack of machines does not come back at one moment.
 */
export function decideDelay(tries: number, firstMs: number, random: number): number {
  const full = Math.min(LONGEST_WAIT_MS, firstMs * 2 ** (tries - 1))
  return Math.round(full * (0.5 + random / 2))
}

/**
 * Parses a `Retry-After` header into milliseconds from now, bounded; null: none. `untilDateMs` is
 * how far away it is where it is a date (NaN: it is none).
 */
export function parseRetryAfter(
  text: string | undefined,
  untilDateMs: number,
  mostMs = LONGEST_OBEYED_MS,
): number | null {
  if (text === undefined) return null
  const wait = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : untilDateMs
  return Number.isNaN(wait) ? null : Math.min(mostMs, Math.max(0, wait))
}
