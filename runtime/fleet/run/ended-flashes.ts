/** Reads the flashes that ended lately, for trends: again after one has ended, not each time somebody looks. */
import { readText, readTextOrNull, type Row } from '../state/sqlite.ts'
import type { Database } from '../state/database.ts'
import type { EndedFlash } from './rules/trends.ts'

/** How old an answer may be while no run ends or is removed, in milliseconds. */
const MAX_AGE_MS = 60_000
/** The newest are counted: more of them than retention usually keeps. */
const MAX_FLASHES = 20_000

/**
 * Creates the reader. `now` in milliseconds. An index finds the runs by their time; of each, a few fields are
 * read, in some 30 ms for 10,000 of them.
 */
export function createEndedFlashes(database: Database, now: () => number) {
  let kept: readonly EndedFlash[] = []
  let key = ''
  let readAt = Number.NEGATIVE_INFINITY

  /** Lists what began at this ISO time or later, the newest first. */
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

/** An index alone answers it. */
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
