/** Decides from when on the times of a table can be trusted: a clock that was set makes nothing old. */

interface TimedRow {
  /** Grows with each row; `at`: milliseconds. */
  readonly number: number
  readonly at: number
}

const DAY_MS = 86_400_000
/** No server is silent this long; one that was keeps more than needed, up to its number of rows. */
const LEAST_JUMP_MS = 180 * DAY_MS

/**
 * The last row's number before the newest jump of the clock, which hides the age of that row and
 * earlier ones; 0: none. `rows` by number, `now` in milliseconds.
 */
export function findLastJump(rows: readonly TimedRow[], days: number, now: number): number {
  const jump = Math.max(LEAST_JUMP_MS, days * DAY_MS)
  const times = [...rows.slice(1).map(({ at }) => at), now]
  const index = rows.findLastIndex(({ at }, n) => (times[n] ?? now) - at > jump)
  return rows[index]?.number ?? 0
}
