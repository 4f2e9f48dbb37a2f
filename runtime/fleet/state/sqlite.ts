/** Drives one SQLite file that db0 has opened, with the features that only SQLite has (docs/decisions/0053). */
import {
  backup,
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementSync,
} from 'node:sqlite'
import { createDatabase as connect, type Database } from 'db0'
import nodeSqlite from 'db0/connectors/node-sqlite'
import { Fault, type FaultCode } from '#kit/foundation/fault.ts'
import { touchFile } from './ownership.ts'

export type SqlValue = SQLInputValue
export type Row = Readonly<Record<string, SQLOutputValue>>

/**
 * Statements in the SQL that SQLite and PostgreSQL share, run at once: without an await, two units
 * of work cannot mix. `?` are parameters.
 */
export interface Sql {
  all(text: string, ...values: readonly SqlValue[]): readonly Row[]
  get(text: string, ...values: readonly SqlValue[]): Row | null
  run(text: string, ...values: readonly SqlValue[]): number
}

export interface CopyOptions {
  /** Pages, copied and in all. */
  onProgress?(done: number, total: number): void
  readonly signal?: AbortSignal
}

export type SqliteFile = ReturnType<typeof openSqlite>

/** For another process's write; everything here stands still meanwhile. */
const BUSY_MS = 2000
const MAX_KEPT = 200
/** Pages of 4 KiB a step: the event loop runs between steps. */
const COPY_PAGES = 256

/** SQLite's errors become Faults that say what they mean for this file. */
export function openSqlite(path: string) {
  const guard = <T>(work: () => T): T => {
    try {
      return work()
    } catch (thrown) {
      throw explainSqlite(thrown, path)
    }
  }
  touchFile(path)
  const database = connect(nodeSqlite({ path }))
  const instance = guard(() => instanceOf(database))
  const prepare = keepStatements(instance)
  const sql: Sql = {
    all: (text, ...values) => guard(() => prepare(text).all(...values)),
    get: (text, ...values) => guard(() => prepare(text).get(...values) ?? null),
    run: (text, ...values) => guard(() => Number(prepare(text).run(...values).changes)),
  }
  /** Several statements without parameters; synchronous with this connector of db0. */
  const execute = (text: string) => guard(() => void database.exec(text))
  execute(`PRAGMA busy_timeout = ${BUSY_MS}`)

  return {
    ...sql,
    ...createPragmas(sql),
    path,
    execute,
    isOpen: () => instance.isOpen,
    /** False: none, or a failure (a full disk) has ended it. */
    isTransaction: () => instance.isTransaction,
    /** All of `work` or nothing. */
    transact: <T>(work: () => T): T =>
      guard(() => {
        execute('BEGIN')
        try {
          const result = work()
          execute('COMMIT')
          return result
        } finally {
          if (instance.isTransaction) execute('ROLLBACK')
        }
      }),
    /** Undoes all of `work`. */
    rehearse: <T>(work: () => T): T =>
      guard(() => {
        execute('BEGIN')
        try {
          return work()
        } finally {
          if (instance.isTransaction) execute('ROLLBACK')
        }
      }),
    async copyTo(target: string, { onProgress, signal }: CopyOptions = {}): Promise<void> {
      await backup(instance, target, {
        rate: COPY_PAGES,
        progress: ({ totalPages, remainingPages }) => {
          signal?.throwIfAborted()
          onProgress?.(totalPages - remainingPages, totalPages)
        },
      })
    },
    close: () => instance.close(),
    [Symbol.dispose]: () => instance.close(),
  }
}

const createPragmas = (sql: Sql) => ({
  /** Null: no damage. `quick` leaves indexes out. */
  findDamage(check: 'quick_check' | 'integrity_check'): string | null {
    const row = sql.get(`PRAGMA ${check}(1)`)
    const verdict = row === null ? 'empty' : readText(row, check)
    return verdict === 'ok' ? null : verdict
  },
  /** False: another process has it open. */
  fold: () => readNumber(sql.get('PRAGMA wal_checkpoint(TRUNCATE)'), 'busy') === 0,
  foldGently: () => void sql.get('PRAGMA wal_checkpoint(PASSIVE)'),
  /** Changes when another process has committed; costs 3 µs. */
  readVersion: () => readNumber(sql.get('PRAGMA data_version'), 'data_version'),
  /** `schema`: `main`, or an attached name. */
  listTables: (schema = 'main'): readonly string[] =>
    sql
      .all(`SELECT name FROM ${schema}.sqlite_master WHERE type = 'table'`)
      .map((row) => readText(row, 'name')),
  listColumns: (schema: string, table: string): readonly string[] =>
    sql.all(`PRAGMA ${schema}.table_info(${table})`).map((row) => readText(row, 'name')),
})

/** Preparing a statement takes longer than running it. */
function keepStatements(instance: DatabaseSync) {
  const kept = new Map<string, StatementSync>()
  return (text: string): StatementSync => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const statement = instance.prepare(text)
    // Filters make many texts; the few that matter are soon back.
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(text, statement)
    return statement
  }
}

/** Typed as a promise, but is none. */
function instanceOf(database: Database): DatabaseSync {
  const instance: unknown = database.getInstance()
  if (instance instanceof DatabaseSync) return instance
  throw new TypeError('db0 gave no node:sqlite connection')
}

type Meaning = readonly [code: FaultCode, describe: (path: string) => string, hint: string]

const DAMAGED: Meaning = [
  'input-invalid',
  (path) => `${path} is damaged or not a database`,
  'Nothing was changed. Move the file and start again, then restore a backup, or the newest state.db.*.bak in the same folder.',
]
const FULL: Meaning = [
  'storage-full',
  (path) => `the disk that holds ${path} is full`,
  'Nothing of this change was stored. Free space on that disk and try again.',
]
const BROKEN: Meaning = [
  'write-failed',
  (path) => `${path} cannot be read or written`,
  'Nothing of this change was stored. The kernel log (dmesg) says more about the disk.',
]
const BUSY: Meaning = [
  'busy',
  (path) => `another process keeps ${path} busy`,
  'Try again when it is done.',
]
const MEANINGS: Readonly<Record<number, Meaning>> = {
  5: BUSY,
  6: BUSY,
  8: BROKEN,
  10: BROKEN,
  11: DAMAGED,
  13: FULL,
  14: BROKEN,
  26: DAMAGED,
}

/** For another program's file, which may be replaced after the read. */
export function readOnce(
  path: string,
  text: string,
  ...values: readonly SqlValue[]
): readonly Row[] {
  using file = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
  return file.prepare(text).all(...values)
}

/** A Fault if a person can do something about it; else unchanged. */
export function explainSqlite(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof Error) || !('errcode' in thrown)) return thrown
  const [code, describe, hint] = MEANINGS[Number(thrown.errcode) & 0xff] ?? []
  if (code === undefined || describe === undefined) return thrown
  return new Fault(code, `${describe(path)} (${thrown.message})`, { hint, cause: thrown })
}

/** Throws a Fault `input-invalid` for anything but text. */
export function readText(row: Row, column: string): string {
  const value = row[column]
  if (typeof value === 'string') return value
  throw new Fault('input-invalid', `the database holds no text in column ${column}`)
}

/** Throws a Fault `input-invalid` for anything but text. */
export const readTextOrNull = (row: Row, column: string): string | null =>
  row[column] === null ? null : readText(row, column)

/** Throws a Fault `input-invalid` for anything but a whole number, or without a row. */
export function readNumber(row: Row | null, column: string): number {
  const value = row?.[column]
  if (typeof value === 'number') return value
  throw new Fault('input-invalid', `the database holds no number in column ${column}`)
}
