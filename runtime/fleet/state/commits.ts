/** Group commit: writes that arrive together share a transaction and one sync; quiet moments fold the log into the file. */
import { open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Eventual } from '../../kit/foundation/eventual.ts'
import { ifMissing } from '../../kit/foundation/system-error.ts'
import { explainSqlite, type Sql, type SqliteFile } from './sqlite.ts'

/** What is done in a transaction, and told whether it lasts. */
export interface Unit {
  /** Does the work in the transaction, and returns what to do once it is on disk. */
  perform(): () => void
  fail(thrown: unknown): void
}

/** `createCommits` is the one for a server that stands alone. */
export interface Commits {
  count(): number
  /** Resolves when the work is committed and on disk; a throw of `work` undoes it alone. */
  write<T>(work: (sql: Sql) => T): Promise<T>
  /** True once it is certain that no other server decides: no promise where there is none. */
  confirm(): Eventual<true>
  /** True once it is certain that no other server has changed anything before this call. */
  confirmRead(): Eventual<true>
  see(batch: readonly SeenMachine[]): Promise<void>
  /** Everything that was asked for so far is done. */
  settle(): Promise<void>
  /** Calls `swap`, which puts another database in the place of this one, when nobody uses this one. */
  exchange(swap: () => string): Promise<string>
  /** To be called before the file is closed: lets go of it; another one may take its place. */
  detach(): Promise<void>
}

/** A machine that was seen, with an ISO time. */
export interface SeenMachine {
  readonly mac: string
  readonly at: string
  readonly ip: string
}

export interface CommitsDependencies {
  /** The file of the moment. */
  current(): SqliteFile
  /** The last statement of each transaction. */
  finish(sql: Sql): void
  /** What was read from the file is to be read again. */
  outdate(): void
}

/** One unit of the transaction that the file of the moment is in when it is performed. */
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
 * SQLite commits to the `-wal` without waiting (`synchronous = NORMAL`: whole after a kill); the wait
 * that makes it last through a power cut too is ours, off the event loop, and one for all commits that
 * were made while the one before was under way. `finish` ends each transaction.
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
      // Nothing is awaited from here on, so that nobody can use the closed file.
      void detach()
      return swap()
    },
    detach,
  }
}

const SEE = 'UPDATE machines SET last_seen_at = ?, last_seen_ip = ? WHERE mac = ?'

/** Does a unit in the transaction that goes on; where it fails, it is undone alone. */
export function attemptUnit(file: SqliteFile, unit: Unit, done: (() => void)[]): void {
  file.execute('SAVEPOINT unit')
  try {
    done.push(unit.perform())
    file.execute('RELEASE unit')
  } catch (thrown) {
    // A full disk ends the whole transaction: then none of this moment's writes was made.
    if (!file.isTransaction()) throw thrown
    file.execute('ROLLBACK TO unit; RELEASE unit')
    unit.fail(thrown)
  }
}

/** The log of one file, from its first commit until somebody detaches from it. */
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
    /** Resolves when all that was written to the file before the call is on the medium. */
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
      // What waits still opens the old file. Those who waited for it have been given the failure already.
      await last.catch(() => undefined)
      await (await old.handle?.catch(() => null))?.close()
    },
  }
}

/** Null when there is none: then all of it was folded into the database, and synced, at its closing. */
async function openLog(path: string): Promise<FileHandle | null> {
  const handle = await open(path, 'r').catch(ifMissing(null))
  if (handle === null) return null
  await using folder = await open(dirname(path), 'r')
  await folder.sync()
  return handle
}

interface FoldingDependencies {
  /** How many transactions were committed so far. */
  commits(): number
  fold(): void
  /** Milliseconds of a clock that nobody sets. */
  elapsed?(): number
}

const LOOK_MS = 2000
/** Where there is no quiet moment, so often anyway. */
const LONGEST_MS = 60_000

/**
 * Folds what is written ahead into the database, so that a copy of the one file is whole. Until
 * disposed of. A moment is quiet when nothing was committed since the look before.
 */
export function startFolding({
  commits,
  fold,
  elapsed = () => performance.now(),
}: FoldingDependencies): Disposable {
  // What a process before this one left behind is folded, too.
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
      // A full disk, perhaps: whoever writes hears of it, and the next look tries again.
    }
  }

  const timer = setInterval(look, LOOK_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
