/** One SQLite file: opened through db0, its pragmas, kept statements, and its failures in words. */
import {
  DatabaseSync,
  type SQLInputValue,
  type SQLOutputValue,
  type StatementSync,
} from 'node:sqlite'
import { createDatabase as connect } from 'db0'
import nodeSqlite from 'db0/connectors/node-sqlite'
import { Fault, type FaultCode } from '../../core/foundation/fault.ts'
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

export interface SqliteFile extends Sql, Disposable {
  readonly path: string
  /** The connection, for what SQLite alone has. */
  readonly instance: DatabaseSync
  /** Several statements at once, without parameters. */
  execute(text: string): void
  /** All of `work` or none of it. */
  transact<T>(work: () => T): T
  close(): void
}

/** Prepared statements that are kept. */
const MAX_KEPT = 200

/** `busyMs`: how long to wait for another process's write, with everything here standing still. */
export function openSqlite(path: string, { busyMs = 2000 } = {}): SqliteFile {
  const guard = <T>(work: () => T): T => {
    try {
      return work()
    } catch (thrown) {
      throw explainSqlite(thrown, path)
    }
  }
  touchFile(path)
  const instance = guard(() => connectFile(path))
  guard(() => {
    instance.exec(`PRAGMA busy_timeout = ${busyMs}`)
  })
  const kept = new Map<string, StatementSync>()
  const prepare = (text: string) => {
    const known = kept.get(text)
    if (known !== undefined) return known
    const statement = instance.prepare(text)
    // Filters make many texts; the few that matter are soon back.
    if (kept.size >= MAX_KEPT) kept.clear()
    kept.set(text, statement)
    return statement
  }

  return {
    path,
    instance,
    all: (text, ...values) => guard(() => prepare(text).all(...values)),
    get: (text, ...values) => guard(() => prepare(text).get(...values) ?? null),
    run: (text, ...values) => guard(() => Number(prepare(text).run(...values).changes)),
    execute(text) {
      guard(() => {
        instance.exec(text)
      })
    },
    transact(work) {
      return guard(() => {
        instance.exec('BEGIN')
        try {
          const result = work()
          instance.exec('COMMIT')
          return result
        } finally {
          // Some failures (a full disk) have ended the transaction already.
          if (instance.isTransaction) instance.exec('ROLLBACK')
        }
      })
    },
    close() {
      kept.clear()
      instance.close()
    },
    [Symbol.dispose]() {
      this.close()
    },
  }
}

/** db0 opens it; what it hands over is typed as a promise and is none. */
function connectFile(path: string): DatabaseSync {
  const instance: unknown = connect(nodeSqlite({ path })).getInstance()
  if (instance instanceof DatabaseSync) return instance
  throw new TypeError('db0 gave no node:sqlite connection')
}

interface Meaning {
  readonly code: FaultCode
  says(path: string): string
  readonly hint: string
}

const DAMAGED: Meaning = {
  code: 'input-invalid',
  says: (path) => `${path} is damaged or no database`,
  hint: 'Nothing was changed. Move the file away and start again, then restore a backup; the newest state.db.*.bak beside it is an older state.',
}
const FULL: Meaning = {
  code: 'storage-full',
  says: (path) => `the disk that holds ${path} is full`,
  hint: 'Nothing of this change was stored. Free space on that disk and try again.',
}
const BROKEN: Meaning = {
  code: 'write-failed',
  says: (path) => `${path} cannot be read or written`,
  hint: 'Nothing of this change was stored. The kernel log (dmesg) says more about the disk.',
}
const BUSY: Meaning = {
  code: 'busy',
  says: (path) => `another process keeps ${path} busy`,
  hint: 'Try again when it is done.',
}
/** SQLite's primary result codes. */
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

/** What SQLite threw, as a Fault where a person can do something about it; anything else unchanged. */
export function explainSqlite(thrown: unknown, path: string): unknown {
  if (!(thrown instanceof Error) || !('errcode' in thrown)) return thrown
  const meaning = MEANINGS[Number(thrown.errcode) & 0xff]
  if (meaning === undefined) return thrown
  return new Fault(meaning.code, `${meaning.says(path)} (${thrown.message})`, {
    hint: meaning.hint,
    cause: thrown,
  })
}

/** A column that holds text. */
export function readText(row: Row, column: string): string {
  const value = row[column]
  if (typeof value === 'string') return value
  throw new Fault('input-invalid', `the database holds no text in column ${column}`)
}

/** A column that holds text or nothing. */
export const readTextOrNull = (row: Row, column: string): string | null =>
  row[column] === null ? null : readText(row, column)

/** A column that holds a whole number. */
export function readNumber(row: Row | null, column: string): number {
  const value = row?.[column]
  if (typeof value === 'number') return value
  throw new Fault('input-invalid', `the database holds no number in column ${column}`)
}
