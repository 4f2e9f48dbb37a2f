/** Deletes expired rows of a growing table. */
import { findLastJump } from './rules/change-count.ts'
import type { Database } from './database.ts'
import { readNumber, readText } from './sqlite.ts'

export interface Retention {
  readonly count: number
  readonly days: number
}

interface GrowingTable {
  readonly table: string
  /** Columns: a growing number, and an ISO time. */
  readonly number: string
  readonly time: string
  readonly condition?: string
}

/** Rows in one transaction: a long one would delay everybody's writes. */
const STEP = 500
export const HOUR_MS = 3_600_000

/** Removes older rows, or more, than `kept` allows; `now` in milliseconds. Returns how many. */
export async function pruneRows(
  database: Database,
  { table, number, time, condition = 'true' }: GrowingTable,
  kept: Retention,
  now: number,
): Promise<number> {
  async function removeBelow(column: string, floor: string | number, after = 0) {
    const which = `${column} < ? AND ${number} > ${after} AND ${condition}`
    const rows = `SELECT ${number} FROM ${table} WHERE ${which} LIMIT ${STEP}`
    const text = `DELETE FROM ${table} WHERE ${number} IN (${rows})`
    for (let removed = 0; ;) {
      const step = await database.write((sql) => sql.run(text, floor))
      removed += step
      if (step < STEP) return removed
    }
  }
  /** If the clock was set, the age of earlier rows is unknown: their number alone counts. */
  function findJump(floor: string): number {
    const old = database.sql.get(`SELECT 1 AS n FROM ${table} WHERE ${time} < ? LIMIT 1`, floor)
    if (old === null) return 0
    const rows = database.sql
      .all(`SELECT ${number} AS n, ${time} AS t FROM ${table} ORDER BY ${number}`)
      .map((row) => ({ number: readNumber(row, 'n'), at: Date.parse(readText(row, 't')) }))
    return findLastJump(rows, kept.days, now)
  }
  const oldest = database.sql.get(
    `SELECT ${number} AS n FROM ${table} ORDER BY ${number} DESC LIMIT 1 OFFSET ?`,
    Math.max(0, Math.trunc(kept.count) - 1),
  )
  const byCount = oldest === null ? 0 : await removeBelow(number, readNumber(oldest, 'n'))
  const since = new Date(now - kept.days * 24 * HOUR_MS).toISOString()
  return byCount + (await removeBelow(time, since, findJump(since)))
}
