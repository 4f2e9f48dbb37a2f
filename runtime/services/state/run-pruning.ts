/** Which runs are not kept any more. */
import type { Database } from './database.ts'
import { readNumber } from './sqlite.ts'

/** What is kept at most. */
export interface RunRetention {
  readonly count: number
  readonly days: number
}

/** Of one machine: no box can push the others' history out. */
const MAX_OF_ONE = 1000
/** Removed in one transaction. */
const STEP = 500
const DAY_MS = 24 * 3_600_000

/** What goes on is never removed. */
const PRUNE = `DELETE FROM runs WHERE n IN (SELECT n FROM runs WHERE n < ? AND result IS NOT NULL
  ORDER BY n LIMIT ?)`
const PRUNE_OLD = `DELETE FROM runs WHERE n IN (SELECT n FROM runs WHERE began < ?
  AND result IS NOT NULL ORDER BY n LIMIT ?)`
const PRUNE_OF_ONE = `DELETE FROM runs WHERE mac = ? AND result IS NOT NULL AND n <=
  (SELECT n FROM runs WHERE mac = ? ORDER BY n DESC LIMIT 1 OFFSET ?)`

/** `now` in milliseconds. Returns how many were removed. */
export async function pruneRuns(
  database: Database,
  kept: RunRetention,
  now: number,
): Promise<number> {
  const count = Math.max(0, Math.trunc(kept.count) - 1)
  const row = database.sql.get('SELECT n FROM runs ORDER BY n DESC LIMIT 1 OFFSET ?', count)
  const floor = row === null ? 0 : readNumber(row, 'n')
  const oldest = new Date(now - kept.days * DAY_MS).toISOString()
  return (
    (await pruneInSteps(database, PRUNE, floor)) + (await pruneInSteps(database, PRUNE_OLD, oldest))
  )
}

export async function pruneRunsOf(database: Database, mac: string): Promise<void> {
  const few = database.sql.get('SELECT count(*) AS c FROM runs WHERE mac = ?', mac)
  if (readNumber(few, 'c') <= MAX_OF_ONE) return
  await database.write((sql) => sql.run(PRUNE_OF_ONE, mac, mac, MAX_OF_ONE))
}

async function pruneInSteps(database: Database, text: string, floor: number | string) {
  let removed = 0
  for (;;) {
    const step = await database.write((sql) => sql.run(text, floor, STEP))
    removed += step
    if (step < STEP) return removed
  }
}
