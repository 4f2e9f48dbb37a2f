/** The server's database: one SQLite file, one process, one connection; acknowledged writes are on disk. */
import { existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { moveNameNow } from '#kit/host/folders.ts'
import {
  type Commits,
  type CommitsDependencies,
  createCommits,
  openChangeCounter,
  startFolding,
} from './commits.ts'
import { insertEvent, SYSTEM_EVENT } from './event-rows.ts'
import { findHolder, lockState } from './lock.ts'
import { adoptFile } from './ownership.ts'
import {
  archiveFile,
  beginState,
  closeWhole,
  COMPANIONS,
  pruneArchives,
  removeDatabase,
  reserveArchive,
  rotateState,
  type SchemaReset,
} from './rotation.ts'
import type { StateDoubt } from './rules/change-count.ts'
import { type Marker, readMarker, SCHEMA, writeSchema } from './schema.ts'
import { type CopyOptions, openSqlite, type Sql, type SqliteFile } from './sqlite.ts'

export interface DatabaseOptions {
  /** `<state_dir>/state.db`; its folder must exist. */
  readonly path: string
  readonly release: string
  /** A file of another line is refused. */
  readonly line: string
  /** For commands: beside a running server its file is used without an upgrade. */
  readonly visit?: boolean
  /** `.bak` files of former releases and restores; default 5. */
  readonly keepArchives?: number
  /** For the restore command: a damaged file is left to be replaced. */
  readonly replacesDamaged?: boolean
  now?(): Date
}

export interface Database extends AsyncDisposable {
  readonly path: string
  readonly release: string
  readonly line: string
  /** False: a visitor beside a running server. */
  readonly isOwner: boolean
  /** Reads at once; a running `write` may show before it is on disk. */
  readonly sql: Sql
  /** The file is damaged; an empty one, kept nowhere, stands in. */
  isStandIn(): boolean
  /** An upgrade at this start rotated the file. */
  readonly reset: SchemaReset | null
  /** The file existed at this start and was empty; an event is recorded. */
  readonly wasEmpty: boolean
  /** Why the file may be an older copy whose orders were carried out; null: it is the newest. */
  readonly doubt: StateDoubt | null
  /** Within a `write`: the file counts as the newest from here on. */
  trust(sql: Sql): void
  /** Within a `write`: a machine's record is changed. */
  countChange(): void
  /**
   * Shares a transaction with this moment's other writes; resolves when it is on disk. A throw
   * undoes `work` alone.
   */
  write<T>(work: (sql: Sql) => T): Promise<T>
  /**
   * True: this server certainly still decides; no promise if the database is this file alone.
   * Rejects with a Fault `no-leader` if it does not, or nobody can say.
   */
  confirm(): MaybePromise<true>
  /**
   * True: certainly no other server has changed anything before this call, so memory may be shown;
   * no promise if the database said so a moment ago. Rejects as `confirm`.
   */
  confirmRead(): MaybePromise<true>
  /** On disk within a second; no change of the machines' records. */
  see(batch: Parameters<Commits['see']>[0]): Promise<void>
  /**
   * From here on `create` makes changes durable: for several servers in a shared database, before
   * they are in this file. What this file holds when it resolves counts as the newest. Nothing may
   * be written meanwhile.
   */
  commitThrough(create: (dependencies: CommitsDependencies) => Promise<Commits>): Promise<void>
  /** Changes when another process has written, or the file was replaced. */
  epoch(): number
  copyTo(path: string, options?: CopyOptions): Promise<void>
  /**
   * `path` must be on the same file system. This database stays as `.bak`, whose name is returned;
   * it goes on if the other is unusable. `prepare` sees it for the last time.
   */
  replaceWith(path: string, prepare?: () => void): Promise<string>
  /** Runs before the file is closed or replaced, to write what waits in memory. */
  beforeClosing(work: () => Promise<unknown>): void
  /** Best effort, until the file is closed for good. */
  repeat(everyMs: number, work: () => Promise<unknown>): void
}

/**
 * Held until disposed of. Archives a file of another release and carries over what is usable.
 * Rejects with a Fault if the file is damaged, of another line, or held by another process (unless
 * `visit`).
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
      // A write meanwhile has opened the log anew.
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
        // Even if something could not be stored: what others wait for is released.
        await settle().finally(() => commits.detach())
        await counter.flush()
      } finally {
        held.close()
        lock?.[Symbol.dispose]()
        for (const timer of timers) clearInterval(timer)
        // A last write has opened the log anew; Node ends a program that forgets an open file.
        await local.detach()
      }
    },
  }
}

const createReader = (current: () => Sql): Sql => ({
  all: (text, ...values) => current().all(text, ...values),
  get: (text, ...values) => current().get(text, ...values),
  run: (text, ...values) => current().run(text, ...values),
})

async function openFiles(options: DatabaseOptions) {
  const { path, release, line, visit = false, keepArchives = 5, replacesDamaged } = options
  const now = () => (options.now?.() ?? new Date()).toISOString()
  await using undo = new AsyncDisposableStack()
  const lock = lockState(`${path}.lock`)
  if (lock === null && !visit) throw inUse(path)
  if (lock !== null) undo.use(lock)
  const isOwner = lock !== null
  const held = openReplaceable({ path, release, line, now, owner: isOwner, replacesDamaged })
  undo.defer(held.close)
  const prune = (made: string | null) =>
    pruneArchives(path, { keep: keepArchives, made, now: now() })
  if (isOwner) prune(held.opened.reset?.archived_at ?? null)
  const counter = await openChangeCounter(held.opened.file, {
    current: held.current,
    adopt: adoptFile,
    isOwner: isOwner && !held.isStandIn(),
  })
  undo.move()
  return { lock, held, counter, prune }
}

function createEpochs(current: () => SqliteFile) {
  let [epoch, version, isRead] = [0, 0, false]
  return {
    begin() {
      epoch += 1
    },
    read(): number {
      // Once a turn of the event loop: a turn's reads see one moment.
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
    hint: 'Stop the other server, or choose another state directory (FLASHER_PATHS_STATE_DIR).',
  })
}

interface StateOpening {
  readonly path: string
  readonly release: string
  readonly line: string
  /** ISO time. */
  readonly now: string
  /** Only the server's process may rotate a file of another release. */
  readonly owner: boolean
}

interface Opened {
  readonly file: SqliteFile
  readonly reset: SchemaReset | null
  /** The file existed and was empty: its former content is lost. */
  readonly wasEmpty: boolean
}

interface ReplaceableOptions extends Omit<StateOpening, 'now'> {
  /** ISO time. */
  now(): string
  /** Where the file is damaged, an empty one stands in, so that a backup can replace it. */
  readonly replacesDamaged?: boolean | undefined
}

function openReplaceable({ now, replacesDamaged, ...opening }: ReplaceableOptions) {
  const { path, release } = opening
  const standIn = `${path}.stand-in`
  const open = (at = path) => openState({ ...opening, path: at, now: now() })
  if (opening.owner) removeDatabase(standIn)
  let isStandIn = false
  const opened = ((): Opened => {
    try {
      return open()
    } catch (thrown) {
      if (replacesDamaged !== true || !isDamage(thrown)) throw thrown
      isStandIn = true
      return open(standIn)
    }
  })()
  let { file } = opened

  /** Nobody may use the held file until this returns. */
  function closeFormer() {
    if (isStandIn) return
    try {
      closeWhole(file)
    } catch (thrown) {
      if (!file.isOpen()) file = open().file
      throw thrown
    }
  }

  return {
    opened,
    current: () => file,
    isStandIn: () => isStandIn,
    /**
     * Returns the name of the former file's `.bak`. If `other` is unusable, all is as before.
     * `settle` changes `other` in the same step.
     */
    replace(other: string, settle: (sql: Sql) => void): string {
      closeFormer()
      const former = file
      const archive = reserveArchive(path, isStandIn ? 'damaged' : release, now())
      archiveFile(path, archive)
      // The log of an unreadable file must not be read into the new one.
      moveCompanions(path, archive)
      try {
        adoptFile(other)
        moveNameNow(other, path)
        const next = open().file
        file = next
        next.transact(() => settle(next))
      } catch (thrown) {
        if (file !== former) file.close()
        file = former
        moveNameNow(archive, path)
        moveCompanions(archive, path)
        if (!isStandIn) file = open().file
        throw thrown
      }
      if (isStandIn) former.close()
      if (isStandIn) removeDatabase(standIn)
      isStandIn = false
      return basename(archive)
    },
    close() {
      file.close()
      if (isStandIn) removeDatabase(standIn)
    },
  }
}

const isDamage = (thrown: unknown) => thrown instanceof Fault && thrown.code === 'input-invalid'

function moveCompanions(from: string, to: string) {
  for (const tail of COMPANIONS) {
    if (existsSync(`${from}${tail}`)) moveNameNow(`${from}${tail}`, `${to}${tail}`)
  }
}

/**
 * Each commit is followed by our own wait for the disk, off the event loop (commits.ts). Only
 * folding blocks the loop: at 8 MiB, half as often as by default.
 */
const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 2000`

/** Throws, with nothing changed, if the file is damaged, of another line, or busy. */
function openState(opening: StateOpening): Opened {
  const { path, release, line, now, owner } = opening
  const ours: Marker = { release, line, schema: SCHEMA }
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) {
    if (!owner) throw notThere(path)
    beginState(path, ours, now)
  }
  const wasEmpty = size === 0
  const file = openSqlite(path)
  try {
    checkHealth(file)
    file.execute(PRAGMAS)
    const plan = planOpening(file, ours, wasEmpty)
    if (plan.action === 'use') return { file, reset: null, wasEmpty: false }
    if (plan.action === 'fill') {
      file.transact(() => {
        writeSchema(file, ours)
        const summary = renderEmptyState(path)
        insertEvent(file, { ...SYSTEM_EVENT, ts: now, kind: 'system.state.empty', summary })
      })
      return { file, reset: null, wasEmpty }
    }
    if (!owner) throw notUpgraded(path, plan.from)
    closeWhole(file)
    const { action: _, ...how } = plan
    const reset = rotateState({ path, to: ours, now, ...how })
    return { file: openState(opening).file, reset, wasEmpty: false }
  } catch (thrown) {
    if (file.isOpen()) file.close()
    throw thrown
  }
}

export const renderEmptyState = (path: string): string =>
  `${basename(path)} was empty, so a new database was created. The machines, settings and events in the old one are lost. You can restore a backup.`

type OpeningPlan =
  | { readonly action: 'use' }
  | { readonly action: 'fill' }
  | ({ readonly action: 'rotate' } & Pick<
      Parameters<typeof rotateState>[0],
      'from' | 'carry' | 'isBare'
    >)

function planOpening(file: SqliteFile, ours: Marker, wasEmpty: boolean): OpeningPlan {
  const found = readMarker(file)
  if (found.kind === 'empty' && wasEmpty) return { action: 'fill' }
  if (found.kind !== 'marked') {
    const isBare = found.kind === 'empty'
    const from = isBare ? 'pre-versioning' : found.from
    return { action: 'rotate', from, carry: false, isBare }
  }
  const { marker } = found
  if (marker.line !== ours.line) throw otherLine(file.path, marker, ours)
  if (marker.release === ours.release && marker.schema === ours.schema) return { action: 'use' }
  const carry = marker.schema <= SCHEMA
  return { action: 'rotate', from: marker.release, carry, isBare: false }
}

const otherLine = (path: string, marker: Marker, ours: Marker) =>
  new Fault(
    'conflict',
    `${path} belongs to the ${marker.line} release line (${marker.release}); this is the ${ours.line} line`,
    {
      hint: 'Start a server of that line, choose another state directory (FLASHER_PATHS_STATE_DIR), or move the file.',
    },
  )

const notThere = (path: string) =>
  new Fault('busy', `${path} is not there, though a server runs`, {
    hint: 'Try again when the server has started.',
  })

const notUpgraded = (path: string, from: string) =>
  new Fault('conflict', `${path} was written by release ${from} and a server is using it`, {
    hint: 'Restart the server with this release first; it upgrades the file.',
  })

/** Larger files are not read through at each start. */
const CHECKED_BYTES = 256 * 1024 * 1024

function checkHealth(file: SqliteFile) {
  if (statSync(file.path).size > CHECKED_BYTES) return
  const damage = file.findDamage('quick_check')
  if (damage === null) return
  throw new Fault('input-invalid', `${file.path} is damaged: ${damage}`, {
    hint: 'Nothing was changed. Move the file and start again, then restore a backup, or the newest state.db.*.bak in the same folder.',
  })
}
