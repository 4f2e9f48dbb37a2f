/** The server's database: one SQLite file, one process, one connection; acknowledged writes are on disk. */
import type { Eventual } from '../../kit/foundation/eventual.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import type { StateDoubt } from './rules/change-count.ts'
import { createCommits, startFolding, type Commits, type CommitsDependencies } from './commits.ts'
import { openChangeCounter } from './change-counter.ts'
import { findHolder, lockState } from './lock.ts'
import { holdFile } from './opening.ts'
import { adoptFile } from './ownership.ts'
import { pruneArchives, type SchemaReset } from './rotation.ts'
import type { CopyOptions, Sql, SqliteFile } from './sqlite.ts'

export interface DatabaseOptions {
  /** `<state_dir>/state.db`; its folder must exist. */
  readonly path: string
  readonly release: string
  /** The release line: a file of another one is refused. */
  readonly line: string
  /**
   * For commands that run beside the server: where one is running, its file is used without upgrading
   * it.
   */
  readonly visit?: boolean
  /** How many `.bak` files of former releases and restores stay; 5 by default. */
  readonly keepArchives?: number
  /** For the command that restores: a damaged file is left to be replaced. */
  readonly replacesDamaged?: boolean
  now?(): Date
}

export interface Database extends AsyncDisposable {
  readonly path: string
  readonly release: string
  readonly line: string
  /** False for a visitor beside a running server. */
  readonly isOwner: boolean
  /** For reading, at once. What `write` is doing at the moment may show before it is on disk. */
  readonly sql: Sql
  /** The file is damaged; what is here instead is empty, and kept nowhere. */
  isStandIn(): boolean
  /** Whether an upgrade rotated the file at this start. */
  readonly reset: SchemaReset | null
  /** Whether the file was there at this start and held nothing; an event is recorded then. */
  readonly wasEmpty: boolean
  /** Why the file may be an older copy, whose orders were carried out since; null: it is the newest. */
  readonly doubt: StateDoubt | null
  /** In the work of a `write`: the file counts as the newest from here on. */
  trust(sql: Sql): void
  /** In the work of a `write`: a machine's record is changed. */
  countChange(): void
  /**
   * Runs `work` in a transaction shared with the other writes of this moment, and resolves when it is
   * on disk. When `work` throws, what it did is undone, alone.
   */
  write<T>(work: (sql: Sql) => T): Promise<T>
  /**
   * True once it is certain that this server still decides: no promise where its database is this file
   * alone. Rejects with a Fault `no-leader` where it does not, or nobody can say.
   */
  confirm(): Eventual<true>
  /**
   * True once it is certain that no other server has changed anything before this call, so that what is
   * in memory may be shown: no promise where the database said so a moment ago. Rejects as `confirm`.
   */
  confirmRead(): Eventual<true>
  /** Notes when machines were seen: on disk within a second, and no change of their records. */
  see(batch: Parameters<Commits['see']>[0]): Promise<void>
  /**
   * From here on what `create` makes has changes last: in a database that several servers share, before
   * they are in this file. What this file holds once it resolves counts as the newest. Nothing may be
   * written meanwhile.
   */
  commitThrough(create: (dependencies: CommitsDependencies) => Promise<Commits>): Promise<void>
  /** Another number after anything was changed by another process, or the file was replaced. */
  epoch(): number
  /** A consistent copy, made while the server goes on. */
  copyTo(path: string, options?: CopyOptions): Promise<void>
  /**
   * Puts another database, on the same file system, in the place of this one, which stays as `.bak`
   * (its name is returned). When the other one cannot be used, this one goes on. `prepare` sees this
   * one for the last time.
   */
  replaceWith(path: string, prepare?: () => void): Promise<string>
  /** Work to do before the file is closed or replaced: what waits in memory is written then. */
  beforeClosing(work: () => Promise<unknown>): void
  /** Best effort, again and again until the file is closed for good. */
  repeat(everyMs: number, work: () => Promise<unknown>): void
}

/**
 * Held until it is disposed of. A file of another release is archived; what this one can use of it
 * is carried over. Rejects with a Fault where the file is damaged, of another release line, or held
 * by another process (unless `visit`).
 */
export async function createDatabase(options: DatabaseOptions): Promise<Database> {
  const { path, release, line } = options
  const closers: (() => Promise<unknown>)[] = []
  const timers: NodeJS.Timeout[] = []
  const { lock, held, counter, prune } = await openFiles(options)
  const { opened, current } = held
  const local = createCommits({ current, finish: counter.finish })
  let commits = local
  const epochs = createEpochs(current)
  const folding = startFolding({
    commits: () => commits.count(),
    fold: () => current().foldGently(),
  })

  async function settle() {
    for (const work of closers) await work()
    await commits.settle()
  }

  return {
    path,
    release,
    line,
    isOwner: lock !== null,
    isStandIn: held.isStandIn,
    reset: opened.reset,
    wasEmpty: opened.wasEmpty,
    doubt: counter.doubt,
    trust: counter.trust,
    countChange: counter.count,
    sql: createReader(current),
    write: (work) => commits.write(work),
    confirm: () => commits.confirm(),
    confirmRead: () => commits.confirmRead(),
    see: (batch) => commits.see(batch),
    async commitThrough(create) {
      await local.detach()
      commits = await create({ current, finish: counter.finish, outdate: epochs.begin })
      // Somebody may have written meanwhile, which opens the log anew.
      await local.detach()
      if (lock !== null) current().transact(() => counter.trust(current()))
      epochs.begin()
    },
    epoch: epochs.read,
    async copyTo(target, copying) {
      await settle()
      await current().copyTo(target, copying)
    },
    async replaceWith(other, prepare) {
      if (lock === null) throw inUse(path)
      for (const work of closers) await work()
      return await commits.exchange(() => {
        prepare?.()
        const archive = held.replace(other, counter.trust)
        epochs.begin()
        prune(archive)
        return archive
      })
    },
    beforeClosing: (work) => void closers.push(work),
    repeat(everyMs, work) {
      timers.push(setInterval(() => void work().catch(() => undefined), everyMs).unref())
    },
    async [Symbol.asyncDispose]() {
      folding[Symbol.dispose]()
      try {
        // Whatever could not be stored: what others wait for is given back.
        await settle().finally(() => commits.detach())
        await counter.flush()
      } finally {
        held.close()
        lock?.[Symbol.dispose]()
        for (const timer of timers) clearInterval(timer)
        // Who wrote until now had the log opened anew; Node ends a program that forgets an open file.
        await local.detach()
      }
    },
  }
}

/** Asks the file that is there at each moment. */
const createReader = (current: () => Sql): Sql => ({
  all: (text, ...values) => current().all(text, ...values),
  get: (text, ...values) => current().get(text, ...values),
  run: (text, ...values) => current().run(text, ...values),
})

/** The lock, the database and its counter, or none of them. */
async function openFiles(options: DatabaseOptions) {
  const { path, release, line, visit = false, keepArchives = 5, replacesDamaged } = options
  const now = () => (options.now?.() ?? new Date()).toISOString()
  await using undo = new AsyncDisposableStack()
  const lock = lockState(`${path}.lock`)
  if (lock === null && !visit) throw inUse(path)
  if (lock !== null) undo.use(lock)
  const isOwner = lock !== null
  const held = holdFile({ path, release, line, now, owner: isOwner, replacesDamaged })
  undo.defer(held.close)
  const prune = (made: string | null) =>
    pruneArchives(path, { keep: keepArchives, made, now: now() })
  if (isOwner) prune(held.opened.reset?.archived_at ?? null)
  const counter = await openChangeCounter(held.opened.file, {
    current: held.current,
    adopt: adoptFile,
    // Nothing is counted of a database that only stands in for another one.
    isOwner: isOwner && !held.isStandIn(),
  })
  undo.move()
  return { lock, held, counter, prune }
}

function createEpochs(current: () => SqliteFile) {
  let [epoch, version, isRead] = [0, 0, false]
  return {
    /** The file is another one. */
    begin() {
      epoch += 1
    },
    read(): number {
      // Once a turn of the event loop: what is read in one turn is read at one moment.
      if (isRead) return epoch
      isRead = true
      setImmediate(() => {
        isRead = false
      })
      const present = current().readVersion()
      if (present !== version) epoch += 1
      version = present
      return epoch
    },
  }
}

const inUse = (path: string) => {
  const holder = findHolder(`${path}.lock`)
  const who = holder === null ? 'another process' : `process ${holder}`
  return new Fault('conflict', `${who} already serves ${path}`, {
    hint: 'One server a state directory: stop the other one, or choose another directory (FLASHER_PATHS_STATE_DIR).',
  })
}
