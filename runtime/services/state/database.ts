/** The server's database: one SQLite file, one process, one connection; acknowledged writes are on disk. */
import { basename } from 'node:path'
import { Fault } from '../../core/foundation/fault.ts'
import { createCommits } from './commits.ts'
import { findHolder, lockState } from './lock.ts'
import { openState } from './opening.ts'
import { adoptFile } from './ownership.ts'
import {
  archiveFile,
  closeWhole,
  moveFile,
  pruneArchives,
  reserveArchive,
  type SchemaReset,
} from './rotation.ts'
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
  /** Whether an upgrade rotated the file at this start. */
  readonly reset: SchemaReset | null
  /** Whether the file was there at this start and held nothing; an event is recorded then. */
  readonly wasEmpty: boolean
  /**
   * Runs `work` in a transaction shared with the other writes of this moment, and resolves when it is
   * on disk. When `work` throws, what it did is undone, alone.
   */
  write<T>(work: (sql: Sql) => T): Promise<T>
  /** Another number after anything was changed by another process, or the file was replaced. */
  epoch(): number
  /** A consistent copy, made while the server goes on. */
  copyTo(path: string, options?: CopyOptions): Promise<void>
  /**
   * Puts another database, on the same file system, in the place of this one, which stays as `.bak`
   * (its name is returned). When the other one cannot be used, this one goes on.
   */
  replaceWith(path: string): Promise<string>
  /** Work to do before the file is closed or replaced: what waits in memory is written then. */
  beforeClosing(work: () => Promise<unknown>): void
  /** Best effort, again and again until the file is closed for good. */
  repeat(everyMs: number, work: () => Promise<unknown>): void
}

export async function createDatabase(options: DatabaseOptions): Promise<Database> {
  const { path, release, line, visit = false, keepArchives = 5 } = options
  const now = () => (options.now?.() ?? new Date()).toISOString()
  const lock = lockState(`${path}.lock`)
  if (lock === null && !visit) throw inUse(path)
  const reopen = () => openState({ path, release, line, now: now(), owner: lock !== null })
  const closers: (() => Promise<unknown>)[] = []
  const timers: NodeJS.Timeout[] = []
  let opened
  try {
    opened = reopen()
    if (lock !== null) pruneArchives(path, keepArchives)
  } catch (thrown) {
    lock?.[Symbol.dispose]()
    throw thrown
  }
  let { file } = opened
  const commits = createCommits(() => file)
  const epochs = createEpochs(() => file)

  async function settle() {
    for (const work of closers) await work()
    await commits.settle()
  }

  return {
    path,
    release,
    line,
    isOwner: lock !== null,
    reset: opened.reset,
    wasEmpty: opened.wasEmpty,
    sql: {
      all: (text, ...values) => file.all(text, ...values),
      get: (text, ...values) => file.get(text, ...values),
      run: (text, ...values) => file.run(text, ...values),
    },
    write: commits.write,
    epoch: epochs.read,
    async copyTo(target, copying) {
      await settle()
      await file.copyTo(target, copying)
    },
    async replaceWith(other) {
      if (lock === null) throw inUse(path)
      await settle()
      // Nothing is awaited from here on, so that nobody can use the closed file.
      void commits.detach()
      closeWhole(file)
      const archive = reserveArchive(path, release, now())
      archiveFile(path, archive)
      epochs.begin()
      try {
        adoptFile(other)
        moveFile(other, path)
        file = reopen().file
      } catch (thrown) {
        moveFile(archive, path)
        file = reopen().file
        throw thrown
      }
      pruneArchives(path, keepArchives)
      return basename(archive)
    },
    beforeClosing: (work) => void closers.push(work),
    repeat(everyMs, work) {
      timers.push(setInterval(() => void work().catch(() => undefined), everyMs).unref())
    },
    async [Symbol.asyncDispose]() {
      try {
        await settle()
        await commits.detach()
      } finally {
        file.close()
        lock?.[Symbol.dispose]()
        for (const timer of timers) clearInterval(timer)
      }
    },
  }
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
