/** Stores runs as rows: the record as JSON, and columns that lists filter by. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { RUN_FIGURES, type RunColumn, type RunSortRow, parseRun } from './rules/run-record.ts'
import {
  RUN_RESULTS,
  type ProofState,
  type Run,
  type RunResult,
} from '#engine/inventory/rules/run.ts'
import { readNumber, readText, readTextOrNull, type Row, type Sql } from '#fleet/state/sqlite.ts'
import { AMONG, condition, flag, renderList, renderWhere, search } from '#fleet/state/event-rows.ts'

export interface NumberedRun {
  readonly n: number
  readonly run: Run
}

/** What SQL can decide; `since` and `until` are ISO times. */
export interface RunCondition {
  readonly mac?: string | undefined
  readonly result?: RunResult | undefined
  readonly image?: string | undefined
  readonly serial?: string | undefined
  readonly since?: string | undefined
  readonly until?: string | undefined
  /** Words, each in machine, image, disk or who armed it. */
  readonly text?: string | undefined
  readonly before?: number | undefined
  readonly boot?: ProofState | undefined
  readonly open?: boolean | undefined
  /** Restricts to these machines. */
  readonly among?: readonly string[] | undefined
}

const SEARCHED = ['mac', 'image', 'model', 'serial', 'actor'] as const

const SAVE = `INSERT INTO runs
  (n, mac, id, began, result, image, image_ref, model, serial, actor, record)
  SELECT coalesce(max(n), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE true
  ON CONFLICT (mac, id) DO UPDATE SET result = excluded.result, image = excluded.image,
  image_ref = excluded.image_ref, model = excluded.model, serial = excluded.serial,
  actor = excluded.actor, record = excluded.record`

export function saveRun(sql: Sql, run: Run): void {
  const { mac, id, started_at, updated_at, result, image, disk, armed_by } = run
  const texts = [image?.name, image?.ref, disk?.model, disk?.serial, armed_by?.actor]
  const searched = texts.map((text) => text ?? null)
  sql.run(SAVE, mac, id, started_at ?? updated_at, result, ...searched, JSON.stringify(run))
}

/** Null: none, or unreadable. */
export const findRun = (sql: Sql, mac: string, id: string): NumberedRun | null =>
  readRow(sql.get('SELECT n, record FROM runs WHERE mac = ? AND id = ?', mac, id))

export const findNewest = (sql: Sql, mac: string): NumberedRun | null =>
  readRow(sql.get('SELECT n, record FROM runs WHERE mac = ? ORDER BY n DESC LIMIT 1', mac))

/** Newest first. */
export const listNewest = (sql: Sql, mac: string, limit: number): readonly Run[] =>
  listRuns(sql, { mac }, limit).map(({ run }) => run)

/** Their system is awaited, or may still be heard of at `now` (ISO 8601); oldest first. */
export const listWatched = (sql: Sql, now: string): readonly Run[] =>
  sql.all(WATCHED, now).flatMap((row) => readRow(row)?.run ?? [])

const WATCHED = `SELECT n, record FROM runs WHERE result = 'done' AND
  (record ->> '$.proof.state' = 'watching' OR
  (record ->> '$.proof.state' = 'failed' AND record ->> '$.proof.until' > ?)) ORDER BY n`

export function listRuns(sql: Sql, filter: RunCondition, limit: number): readonly NumberedRun[] {
  const { text, values } = renderRunWhere(filter)
  const query = `SELECT n, record FROM runs ${text} ORDER BY n DESC LIMIT ?`
  return sql.all(query, ...values, limit).flatMap((row) => readRow(row) ?? [])
}

const FIGURES = `json_extract(record, ${RUN_FIGURES.map((name) => `'$.${name}'`).join(', ')})`

const SORTED_BY: Readonly<Record<RunColumn, string>> = {
  state: 'NULL',
  machine: 'NULL',
  image: 'coalesce(image, image_ref)',
  disk: 'coalesce(model, serial)',
  duration: FIGURES,
  rate: FIGURES,
  verified: FIGURES,
  armer: 'actor',
  started: 'began',
}

export function listSortRows(
  sql: Sql,
  filter: RunCondition,
  column: RunColumn,
): readonly RunSortRow[] {
  const { text, values } = renderRunWhere(filter)
  const query = `SELECT n, mac, result, ${SORTED_BY[column]} AS value FROM runs ${text} ORDER BY n DESC`
  return sql.all(query, ...values).flatMap((row) => {
    const mac = parseMac(readText(row, 'mac'))
    const result = readTextOrNull(row, 'result')
    return mac.ok
      ? {
          n: readNumber(row, 'n'),
          mac: mac.value,
          result: RUN_RESULTS.find((each) => each === result) ?? null,
          value: readTextOrNull(row, 'value'),
        }
      : []
  })
}

/** In this order; missing ones are left out. */
export const readRuns = (sql: Sql, numbers: readonly number[]): readonly NumberedRun[] =>
  numbers.flatMap((n) => readRow(sql.get('SELECT n, record FROM runs WHERE n = ?', n)) ?? [])

/** Deletes its log, too. False: no such run, or it is open. */
export function deleteRun(sql: Sql, mac: string, id: string): boolean {
  const text = 'DELETE FROM runs WHERE mac = ? AND id = ? AND result IS NOT NULL'
  const isGone = sql.run(text, mac, id) > 0
  if (isGone) sql.run('DELETE FROM run_logs WHERE mac = ? AND id = ?', mac, id)
  return isGone
}

export function countRuns(sql: Sql, filter: RunCondition): number {
  const { text, values } = renderRunWhere(filter)
  return readNumber(sql.get(`SELECT count(*) AS c FROM runs ${text}`, ...values), 'c')
}

const renderRunWhere = (filter: RunCondition) =>
  renderWhere([
    ...condition('mac = ?', filter.mac),
    ...condition('result = ?', filter.result),
    ...condition('serial = ?', filter.serial),
    ...condition('image = ? OR image_ref = ?', filter.image),
    ...condition('began >= ?', filter.since),
    ...condition('began < ?', filter.until),
    ...flag('result IS NULL', filter.open),
    ...condition(`record ->> '$.proof.state' = ?`, filter.boot),
    ...condition('n < ?', filter.before),
    ...condition(`mac ${AMONG}`, renderList(filter.among)),
    ...search(SEARCHED, filter.text),
  ])

function readRow(row: Row | null): NumberedRun | null {
  if (row === null) return null
  const run = parseRun(parseJson(readText(row, 'record')))
  return run === null ? null : { n: readNumber(row, 'n'), run }
}

/** A machine has at most one open run. */
export const MAX_OPEN = 100_000
