/** Group commit: writes that arrive together share a transaction and one sync; quiet moments fold the log into the file. */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { ifMissing } from '#kit/foundation/fault.ts'
import { replaceFile } from '#kit/host/folders.ts'
import {
  type ChangeCount,
  decideStateDoubt,
  followCounts,
  parseChangeCount,
  renderChangeCount,
  type StateDoubt,
} from './rules/change-count.ts'
import { explainSqlite, type Sql, type SqliteFile } from './sqlite.ts'

export interface Unit {
  /** Works in the transaction; returns what to do once it is on disk. */
  perform(): () => void
  fail(thrown: unknown): void
}

/** `createCommits` is the one for a single server. */
export interface Commits {
  count(): number
  /** Resolves when the work is committed and on disk; a throw of `work` undoes it alone. */
  write<T>(work: (sql: Sql) => T): Promise<T>
  /** True: certainly no other server decides. A promise only if that has to be asked. */
  confirm(): MaybePromise<true>
  /** True: certainly no other server has changed anything before this call. */
  confirmRead(): MaybePromise<true>
  see(batch: readonly SeenMachine[]): Promise<void>
  settle(): Promise<void>
  /** Calls `swap`, which replaces this database, when nobody uses this one. */
  exchange(swap: () => string): Promise<string>
  /** Call it before the file is closed or replaced. */
  detach(): Promise<void>
}

export interface SeenMachine {
  readonly mac: string
  /** ISO time. */
  readonly at: string
  readonly ip: string
}

export interface CommitsDependencies {
  current(): SqliteFile
  finish(sql: Sql): void
  outdate(): void
}

export const createUnit = <T>(
  current: () => SqliteFile,
  work: (sql: Sql) => T,
  resolve: (value: T) => void,
  reject: (thrown: unknown) => void,
): Unit => ({
  perform() {
    const value = work(current())
    return () => resolve(value)
  },
  fail: reject,
})

/**
 * SQLite commits to the `-wal` without waiting (`synchronous = NORMAL`: whole after a kill). The
 * wait that survives a power cut is ours, off the event loop: one for all commits made during the
 * former one. `finish` ends each transaction.
 */
export function createCommits({
  current,
  finish,
}: Pick<CommitsDependencies, 'current' | 'finish'>): Commits {
  const disk = createDisk()
  let queue: Unit[] = []
  let armed = false
  let last: Promise<void> = Promise.resolve()
  let count = 0

  function flush() {
    if (!armed) return
    armed = false
    const file = current()
    const units = queue
    queue = []
    const done: (() => void)[] = []
    const failAll = (thrown: unknown) => {
      for (const unit of units) unit.fail(explainSqlite(thrown, file.path))
    }
    try {
      file.transact(() => {
        for (const unit of units) attemptUnit(file, unit, done)
        finish(file)
      })
    } catch (thrown) {
      failAll(thrown)
      return
    }
    count += 1
    last = disk.sync(`${file.path}-wal`).then(() => {
      for (const resolve of done) resolve()
    }, failAll)
  }

  const write = <T>(work: (sql: Sql) => T): Promise<T> =>
    new Promise((resolve, reject) => {
      queue.push(createUnit(current, work, resolve, reject))
      if (armed) return
      armed = true
      setImmediate(flush)
    })
  async function settle(): Promise<void> {
    flush()
    await last
  }
  function detach(): Promise<void> {
    flush()
    return disk.detach()
  }

  return {
    count: () => count,
    write,
    confirm: () => true,
    confirmRead: () => true,
    see: (batch) =>
      write((sql) => {
        for (const { mac, at, ip } of batch) sql.run(SEE, at, ip, mac)
      }),
    settle,
    async exchange(swap) {
      await settle()
      // No await from here on, so that nobody can use the closed file.
      void detach()
      return swap()
    },
    detach,
  }
}

const SEE = 'UPDATE machines SET last_seen_at = ?, last_seen_ip = ? WHERE mac = ?'

export function attemptUnit(file: SqliteFile, unit: Unit, done: (() => void)[]): void {
  file.execute('SAVEPOINT unit')
  try {
    done.push(unit.perform())
    file.execute('RELEASE unit')
  } catch (thrown) {
    // A full disk ends the whole transaction: none of this moment's writes was made.
    if (!file.isTransaction()) throw thrown
    file.execute('ROLLBACK TO unit; RELEASE unit')
    unit.fail(thrown)
  }
}

interface OpenLog {
  handle: Promise<FileHandle | null> | null
}

function createDisk() {
  let log: OpenLog = { handle: null }
  let running: Promise<void> = Promise.resolve()
  let waiting: Promise<void> | null = null

  async function reach(of: OpenLog, path: string) {
    of.handle ??= openLog(path).catch((thrown: unknown) => {
      of.handle = null
      throw thrown
    })
    const handle = await of.handle
    await handle?.datasync()
  }

  return {
    /** Resolves when all writes before the call are on the medium. */
    sync(path: string): Promise<void> {
      const own = log
      const begin = () => {
        if (own === log) waiting = null
        running = reach(own, path)
        return running
      }
      return (waiting ??= running.then(begin, begin))
    },
    /** The next call opens anew; resolves when the old file is closed. */
    async detach(): Promise<void> {
      const old = log
      const last = waiting ?? running
      log = { handle: null }
      waiting = null
      // Waiters still use the old file; they have been given the failure already.
      await last.catch(() => undefined)
      await (await old.handle?.catch(() => null))?.close()
    },
  }
}

/** Null: no log; its closing has folded and synced all of it. */
async function openLog(path: string): Promise<FileHandle | null> {
  const handle = await open(path, 'r').catch(ifMissing(null))
  if (handle === null) return null
  await using folder = await open(dirname(path), 'r')
  await folder.sync()
  return handle
}

interface FoldingDependencies {
  commits(): number
  fold(): void
  /** Milliseconds of a steady clock. */
  elapsed?(): number
}

const LOOK_MS = 2000
/** Without a quiet moment, this often. */
const LONGEST_MS = 60_000

/**
 * Folds the log into the file, so that a copy of the one file is whole. A moment is quiet without
 * commits since the last look. Runs until disposed of.
 */
export function startFolding({
  commits,
  fold,
  elapsed = () => performance.now(),
}: FoldingDependencies): Disposable {
  // A former process's log is folded, too.
  let [seen, folded, foldedAt] = [0, -1, elapsed()]

  function look() {
    const count = commits()
    const isQuiet = count === seen
    seen = count
    if (count === folded || !(isQuiet || elapsed() - foldedAt > LONGEST_MS)) return
    try {
      fold()
      folded = count
      foldedAt = elapsed()
    } catch {
      // Perhaps a full disk: writers hear of it, and the next look tries again.
    }
  }

  const timer = setInterval(look, LOOK_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

interface CountSql {
  get(text: string): Readonly<Record<string, unknown>> | null
  run(text: string, ...values: readonly (string | number)[]): number
}

/** The file may lag this much: a restored copy is older than that. */
const LAG_MS = 1000
/** Not `state.db-…`: a pattern that copies the database must not take the count along. */
const FILE = 'changes.json'

interface CounterDependencies {
  /** The open database; another one may take its place. */
  current(): CountSql
  /** Gives a file that root has made to the server's user. */
  adopt(file: string): void
  /** A visitor beside the server counts, and leaves the file to the server. */
  readonly isOwner: boolean
}

export async function openChangeCounter(
  opened: CountSql & { readonly path: string },
  { current, adopt, isOwner }: CounterDependencies,
) {
  const file = join(dirname(opened.path), FILE)
  const text = await readFile(file, 'utf8').catch(ifMissing(null))
  let beside = text === null ? null : parseChangeCount(text)
  const doubt = isOwner ? decideDoubt(readCount(opened), text, beside) : null
  let isChanged = false

  const lagged = createLaggedWrites<'count', object>(LAG_MS, async () => {
    const present = readCount(current())
    if (!isOwner || present === null || isSame(present, beside)) return
    await replaceFile(file, renderChangeCount(present))
    adopt(file)
    beside = present
  })

  /** A new object each time: notes during a write wait for the next one. */
  const countLater = () => lagged.note('count', {})

  /**
   * The file comes first, with 0: otherwise a start cut off in between would be doubted. Best
   * effort: without it the next start arms nothing, and says so.
   */
  function begin(): void {
    const begun = { id: randomUUID(), count: 0 }
    try {
      writeFileSync(file, renderChangeCount(begun), { flush: true })
      adopt(file)
      beside = begun
    } catch {
      beside = null
    }
  }

  /** The database counts as the newest from here on, also by a visitor's first change. */
  function trust(sql: CountSql): void {
    if (beside === null) begin()
    const { id, count } = followCounts(readCount(sql), beside, randomUUID)
    sql.run('DELETE FROM change_count')
    sql.run('INSERT INTO change_count (id, count) VALUES (?, ?)', id, count)
    countLater()
  }

  return {
    /** Why orders may have been carried out since; null: they were not. */
    doubt,
    trust,
    count(): void {
      isChanged = true
    },
    /** The last statement of a transaction that changed records. */
    finish(sql: CountSql): void {
      if (!isChanged) return
      isChanged = false
      if (sql.run('UPDATE change_count SET count = count + 1') === 0) trust(sql)
      countLater()
    },
    /** Best effort: a file that lags only hides copies of the last moments. */
    flush: (): Promise<void> => lagged.flush().catch(() => undefined),
  }
}

/** An unreadable file counts as missing, which arms nothing. */
const decideDoubt = (
  inside: ChangeCount | null,
  text: string | null,
  beside: ChangeCount | null,
): StateDoubt | null =>
  text !== null && beside === null ? 'missing' : decideStateDoubt(inside, beside)

function readCount(sql: CountSql): ChangeCount | null {
  const row = sql.get('SELECT id, count FROM change_count')
  return row === null ? null : parseChangeCount(JSON.stringify(row))
}

const isSame = (a: ChangeCount, b: ChangeCount | null): boolean =>
  b !== null && a.id === b.id && a.count === b.count

export const renderDoubt = (path: string, doubt: StateDoubt): string => {
  const [name, file] = [basename(path), FILE]
  switch (doubt) {
    case 'missing':
      return `${name} is a copy, or ${file} beside it was removed or damaged`
    case 'foreign':
      return `${name} belongs to another state directory than ${file} beside it`
    case 'older':
      return `${name} is older than ${file} beside it says`
  }
}

/**
 * Keeps values for `lagMs` milliseconds before it hands them to `store`, which resolves once the
 * batch is on disk; where it fails, all of it waits for the next try.
 */
export function createLaggedWrites<Key, Value>(
  lagMs: number,
  store: (batch: readonly (readonly [Key, Value])[]) => Promise<void>,
) {
  const waiting = new Map<Key, Value>()
  let timer: NodeJS.Timeout | null = null

  async function flush() {
    if (timer !== null) clearTimeout(timer)
    timer = null
    const batch = [...waiting]
    if (batch.length === 0) return
    await store(batch)
    for (const [key, value] of batch) if (waiting.get(key) === value) waiting.delete(key)
  }
  const later = () => {
    timer ??= setTimeout(() => {
      timer = null
      flush().catch(later)
    }, lagMs).unref()
  }

  return {
    /** What is not stored yet. */
    find: (key: Key): Value | undefined => waiting.get(key),
    note(key: Key, value: Value): void {
      waiting.set(key, value)
      later()
    },
    forget: (key: Key) => waiting.delete(key),
    flush,
  }
}
