/** Reads the flashes that ended lately, for trends: again after one has ended, not each time somebody looks. */
import { readText, readTextOrNull, type Row } from '#fleet/state/sqlite.ts'
import type { Database } from '#fleet/state/database.ts'
import type { EndedFlash } from './rules/trends.ts'

/** The age of an answer, in milliseconds, while no run ends or is removed. */
const MAX_AGE_MS = 60_000
const MAX_FLASHES = 20_000

/** `now` in milliseconds. An index finds the runs; reading 10,000 takes some 30 ms. */
export function createEndedFlashes(database: Database, now: () => number) {
  let kept: readonly EndedFlash[] = []
  let key = ''
  let readAt = Number.NEGATIVE_INFINITY

  /** Newest first. `since`: ISO time of the beginning. */
  return function list(since: string): readonly EndedFlash[] {
    const ends = database.sql.all(ENDS).map((row) => `${row['result']} ${row['c']} ${row['last']}`)
    const asked = `${database.epoch()} ${since} ${ends.join()}`
    const age = now() - readAt
    if (asked === key && age < MAX_AGE_MS) return kept
    kept = database.sql.all(ENDED, since, MAX_FLASHES).map(readRow)
    ;[key, readAt] = [asked, now()]
    return kept
  }
}

const ENDS = `SELECT result, count(*) AS c, max(n) AS last FROM runs WHERE result IS NOT NULL GROUP BY result`

const ENDED = `SELECT mac, began, result, image, model,
  record ->> '$.started_at' AS started, record ->> '$.ended_at' AS ended
  FROM runs WHERE began >= ? AND result IS NOT NULL AND record ->> '$.mode' <> 'capture'
  ORDER BY began DESC LIMIT ?`

function readRow(row: Row): EndedFlash {
  const [started, ended] = [readTextOrNull(row, 'started'), readTextOrNull(row, 'ended')]
  const seconds =
    started === null || ended === null ? null : (Date.parse(ended) - Date.parse(started)) / 1000
  return {
    mac: readText(row, 'mac'),
    began: readText(row, 'began'),
    isDone: readTextOrNull(row, 'result') === 'done',
    image: readTextOrNull(row, 'image'),
    model: readTextOrNull(row, 'model'),
    seconds,
  }
}
