/** Group commit: writes that arrive together share a transaction and one sync; quiet moments fold the log into the file. */
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Eventual } from '#kit/foundation/eventual.ts'
import { ifMissing } from '#kit/foundation/system-error.ts'
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
  confirm(): Eventual<true>
  /** True: certainly no other server has changed anything before this call. */
  confirmRead(): Eventual<true>
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
