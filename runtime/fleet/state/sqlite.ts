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
import { Fault, type FaultCode } from '../../kit/foundation/fault.ts'
import { touchFile } from './ownership.ts'

export type SqlValue = SQLInputValue
export type Row = Readonly<Record<string, SQLOutputValue>>

/**
 * Statements run at once, in the words that SQLite and PostgreSQL share; `?` are parameters. Nothing
 * is awaited inside, so that no two units of work can mix.
 */
export interface Sql {
  all(text: string, ...values: readonly SqlValue[]): readonly Row[]
  get(text: string, ...values: readonly SqlValue[]): Row | null
  /** How many rows were changed. */
  run(text: string, ...values: readonly SqlValue[]): number
}

export interface CopyOptions {
  /** Pages copied and pages in all. */
  onProgress?(done: number, total: number): void
  readonly signal?: AbortSignal
}

export type SqliteFile = ReturnType<typeof openSqlite>

/** How long to wait for another process's write, with everything here standing still. */
const BUSY_MS = 2000
/** Prepared statements that are kept. */
const MAX_KEPT = 200
/** Pages of 4 KiB per step of a copy: the event loop goes on between steps. */
const COPY_PAGES = 256

/**
 * What SQLite throws becomes a Fault that says what it means for this file, here and in each call.
 */
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
  /** Several statements without parameters. This connector of db0 has done them, or thrown, when it returns. */
  const execute = (text: string) => guard(() => void database.exec(text))
  execute(`PRAGMA busy_timeout = ${BUSY_MS}`)

  return {
    ...sql,
    ...createPragmas(sql),
    path,
    execute,
    isOpen: () => instance.isOpen,
    /** False where there is no transaction, or a failure (a full disk) has ended it. */
    isTransaction: () => instance.isTransaction,
    /** All of `work` or none of it. */
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
    /** Does `work` in a transaction, and undoes all of it. */
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

/** Queries in SQLite's own words. */
const createPragmas = (sql: Sql) => ({
  /** What is damaged; null: nothing is. `quick` leaves indexes out. */
  findDamage(check: 'quick_check' | 'integrity_check'): string | null {
    const row = sql.get(`PRAGMA ${check}(1)`)
    const verdict = row === null ? 'empty' : readText(row, check)
    return verdict === 'ok' ? null : verdict
  },
  /** Folds the `-wal` into the file. False: another process has it open. */
  fold: () => readNumber(sql.get('PRAGMA wal_checkpoint(TRUNCATE)'), 'busy') === 0,
  /** Folds as much of it as nobody is reading, and waits for nobody. */
  foldGently: () => void sql.get('PRAGMA wal_checkpoint(PASSIVE)'),
  /** Changes when another process has committed; 3 µs. */
  readVersion: () => readNumber(sql.get('PRAGMA data_version'), 'data_version'),
  /** `schema`: `main`, or what another file is attached as. */
  listTables: (schema = 'main'): readonly string[] =>
    sql
      .all(`SELECT name FROM ${schema}.sqlite_master WHERE type = 'table'`)
      .map((row) => readText(row, 'name')),
  listColumns: (schema: string, table: string): readonly string[] =>
    sql.all(`PRAGMA ${schema}.table_info(${table})`).map((row) => readText(row, 'name')),
})

/** A statement is prepared once and kept: that takes longer than to run it. */
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

/** The connection that db0 has opened; it is typed as a promise and is none. */
function instanceOf(database: Database): DatabaseSync {
  const instance: unknown = database.getInstance()
  if (instance instanceof DatabaseSync) return instance
  throw new TypeError('db0 gave no node:sqlite connection')
}

type Meaning = readonly [code: FaultCode, describe: (path: string) => string, hint: string]

const DAMAGED: Meaning = [
  'input-invalid',
  (path) => `${path} is damaged or not a database`,
  'Nothing was changed. Move the file away and start again, then restore a backup; the newest state.db.*.bak beside it is an older state.',
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
/** The keys are SQLite's primary result codes. */
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

/** The file is another program's, which may replace it as soon as it is read. */
export function readOnce(
  path: string,
  text: string,
  ...values: readonly SqlValue[]
): readonly Row[] {
  using file = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS })
  return file.prepare(text).all(...values)
}

/** What SQLite threw, as a Fault where a person can do something about it; anything else unchanged. */
export function explainSqlite(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof Error) || !('errcode' in thrown)) return thrown
  const [code, describe, hint] = MEANINGS[Number(thrown.errcode) & 0xff] ?? []
  if (code === undefined || describe === undefined) return thrown
  return new Fault(code, `${describe(path)} (${thrown.message})`, { hint, cause: thrown })
}

/** Throws a Fault `input-invalid` where the column holds anything but text. */
export function readText(row: Row, column: string): string {
  const value = row[column]
  if (typeof value === 'string') return value
  throw new Fault('input-invalid', `the database holds no text in column ${column}`)
}

/** Throws a Fault `input-invalid` where the column holds anything but text. */
export const readTextOrNull = (row: Row, column: string): string | null =>
  row[column] === null ? null : readText(row, column)

/** Throws a Fault `input-invalid` where the column holds no whole number, or there is no row. */
export function readNumber(row: Row | null, column: string): number {
  const value = row?.[column]
  if (typeof value === 'number') return value
  throw new Fault('input-invalid', `the database holds no number in column ${column}`)
}
