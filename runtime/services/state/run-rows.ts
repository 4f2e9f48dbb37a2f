/** Runs as rows: the record as JSON, and beside it what lists are filtered by. */
import { parseJson } from '../../core/foundation/json-reader.ts'
import { parseRun } from '../../core/machine/run-record.ts'
import type { Run, RunResult } from '../../core/machine/run.ts'
import { readNumber, readText, type Row, type Sql, type SqlValue } from './sqlite.ts'

/** A run and its number: later ones have higher ones. */
export interface NumberedRun {
  readonly n: number
  readonly run: Run
}

/** As far as a filter is a condition; `began` is ISO time. */
export interface RunCondition {
  readonly mac?: string
  readonly result?: RunResult
  /** Its name or its ref. */
  readonly image?: string
  /** The disk's serial. */
  readonly serial?: string
  readonly since?: string
  readonly until?: string
  /** Words, each somewhere in machine, image, disk and who armed it. */
  readonly text?: string
  readonly before?: number
  /** Those that go on. */
  readonly open?: boolean
}

const WORDS = ['mac', 'image', 'model', 'serial', 'actor'] as const
const COLUMNS = 'mac, id, began, result, image, image_ref, model, serial, actor, record'

const SAVE = `INSERT INTO runs (n, ${COLUMNS})
  SELECT coalesce(max(n), 0) + 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM runs WHERE true
  ON CONFLICT (mac, id) DO UPDATE SET result = excluded.result, image = excluded.image,
  image_ref = excluded.image_ref, model = excluded.model, serial = excluded.serial,
  actor = excluded.actor, record = excluded.record`

/** Stores a run, a new one under the next number. */
export function saveRun(sql: Sql, run: Run): void {
  const { mac, id, started_at, updated_at, result } = run
  sql.run(
    SAVE,
    mac,
    id,
    started_at ?? updated_at,
    result,
    ...listSearched(run),
    JSON.stringify(run),
  )
}

const listSearched = ({ image, disk, armed_by }: Run): readonly SqlValue[] => {
  const texts = [image?.name, image?.ref, disk?.model, disk?.serial, armed_by?.actor]
  return texts.map((text) => text ?? null)
}

/** Null where nothing is stored, or what is stored cannot be read. */
export const findRun = (sql: Sql, mac: string, id: string): NumberedRun | null =>
  readRow(sql.get('SELECT n, record FROM runs WHERE mac = ? AND id = ?', mac, id))

export const findNewest = (sql: Sql, mac: string): NumberedRun | null =>
  readRow(sql.get('SELECT n, record FROM runs WHERE mac = ? ORDER BY n DESC LIMIT 1', mac))

export const listOpen = (sql: Sql): readonly NumberedRun[] =>
  readRows(sql.all('SELECT n, record FROM runs WHERE result IS NULL ORDER BY n'))

/** Newest first. */
export function listRuns(sql: Sql, condition: RunCondition, limit: number): readonly NumberedRun[] {
  const { text, values } = renderWhere(condition)
  return readRows(
    sql.all(`SELECT n, record FROM runs ${text} ORDER BY n DESC LIMIT ?`, ...values, limit),
  )
}

export function countRuns(sql: Sql, condition: RunCondition): number {
  const { text, values } = renderWhere(condition)
  return readNumber(sql.get(`SELECT count(*) AS c FROM runs ${text}`, ...values), 'c')
}

interface Part {
  readonly text: string
  readonly values: readonly SqlValue[]
}

function renderWhere(condition: RunCondition): Part {
  const { mac, result, image, serial, since, until, text, before, open } = condition
  const words = (text ?? '').toLowerCase().split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)
  const parts: readonly Part[] = [
    ...equal('mac', mac),
    ...equal('result', result),
    ...equal('serial', serial),
    ...(image === undefined
      ? []
      : [{ text: '(image = ? OR image_ref = ?)', values: [image, image] }]),
    ...(since === undefined ? [] : [{ text: 'began >= ?', values: [since] }]),
    ...(until === undefined ? [] : [{ text: 'began < ?', values: [until] }]),
    ...(open === true ? [{ text: 'result IS NULL', values: [] }] : []),
    ...(before === undefined ? [] : [{ text: 'n < ?', values: [before] }]),
    ...words.map(search),
  ]
  return {
    text: parts.length === 0 ? '' : `WHERE ${parts.map((part) => part.text).join(' AND ')}`,
    values: parts.flatMap(({ values }) => values),
  }
}

const MAX_WORDS = 8

const equal = (column: string, value: string | undefined): readonly Part[] =>
  value === undefined ? [] : [{ text: `${column} = ?`, values: [value] }]

/** `%` and `_` are characters like any other. */
function search(word: string): Part {
  const pattern = `%${word.replace(/[!%_]/g, '!$&')}%`
  const any = WORDS.map((column) => `lower(coalesce(${column}, '')) LIKE ? ESCAPE '!'`)
  return { text: `(${any.join(' OR ')})`, values: WORDS.map(() => pattern) }
}

const readRows = (rows: readonly Row[]) => rows.flatMap((row) => readRow(row) ?? [])

function readRow(row: Row | null): NumberedRun | null {
  if (row === null) return null
  const run = parseRun(parseJson(readText(row, 'record')))
  return run === null ? null : { n: readNumber(row, 'n'), run }
}
