/** Backups: queued, made, listed, kept for a while, restored; one thing at a time. */
import { nextBackupId, planBackupPruning, type BackupSettings } from '../core/backup.ts'
import { Fault, renderError } from '../core/fault.ts'
import {
  createBackupJob,
  describeBackupJob,
  type BackupJob,
  type BackupTrigger,
} from './backup-job.ts'
import type { BackupMaker } from './backup-maker.ts'
import type { Restored, Restorer } from './backup-restorer.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'
import type { Feed } from './feed.ts'
import type { Actor, EventNote, Journal } from './journal.ts'

/** Who asked for it, for the record. */
export interface BackupAsker {
  readonly actor: Actor
  readonly ip: string | null
}

/** What is being restored now. */
export interface Restoring {
  readonly backup_id: string
  readonly bytes_done: number
  readonly bytes_total: number | null
}

export interface Backups extends AsyncDisposable {
  /** Those of this process, newest first; finished ones stay listed. */
  jobs(): readonly BackupJob[]
  /** All that can be restored, newest first. */
  list(): Promise<readonly StoredBackup[]>
  find(id: string): Promise<StoredBackup | null>
  /** Queues one and answers at once. */
  start(trigger: BackupTrigger, by: BackupAsker): Promise<BackupJob>
  /** Null when no job has that id; one that has ended stays as it is. */
  cancel(id: string, by: BackupAsker): Promise<BackupJob | null>
  /** Resolves with the job once it has ended; null when no job has that id. */
  awaitEnd(id: string): Promise<BackupJob | null>
  /** Removes a stored backup; null when there is none. */
  remove(id: string, by: BackupAsker): Promise<StoredBackup | null>
  /** A file of a backup (`inventory.json`, `state.db`) in pieces, each checked; null when there is none. */
  download(id: string, name: string): Promise<Download | null>
  /** Puts it in force. Waits for the backups that are queued; what was there stays as `.bak`. */
  restore(id: string, by: BackupAsker): Promise<Restored>
  restoring(): Restoring | null
}

export interface Download {
  /** Null when it is not known. */
  readonly bytes: number | null
  readonly pieces: AsyncIterable<Uint8Array>
}

export interface BackupParts {
  readonly store: BackupStore
  readonly maker: BackupMaker
  readonly restorer: Restorer
  readonly journal: Journal
  readonly feed: Feed
  settings(): BackupSettings
  now?(): Date
}

interface Job {
  shown: BackupJob
  readonly abort: AbortController
  readonly ended: Promise<void>
}

/** Finished jobs that stay listed. */
const MOST_JOBS = 100
/** Between two words of progress. */
const PROGRESS_MS = 1000

export function createBackups(parts: BackupParts): Backups {
  const { store, maker, restorer, journal, feed } = parts
  const now = () => (parts.now?.() ?? new Date()).toISOString()
  const jobs = new Map<string, Job>()
  let last: Promise<unknown> = maker.clean()
  last.catch(() => undefined)
  let restoring: Restoring | null = null
  let saidAt = 0
  let admitting: Promise<unknown> = Promise.resolve()

  /** One after the other; what failed before is no reason to fail. */
  function enqueue<T>(work: () => Promise<T>): Promise<T> {
    const next = last.then(work, work)
    last = next
    return next
  }

  const note = (kind: string, id: string, summary: string, more: NoteMore) =>
    journal.record({
      kind,
      subject_kind: 'backup',
      subject_id: id,
      actor: more.by.actor,
      source_ip: more.by.ip,
      summary,
      details: more.details ?? { backup_id: id },
    })

  function show(job: Job, change: Partial<BackupJob>) {
    job.shown = { ...job.shown, ...change }
    feed.announce({ topic: 'backup', key: job.shown.backup_id })
  }

  function announceProgress(id: string) {
    if (Math.abs(Date.now() - saidAt) < PROGRESS_MS) return
    saidAt = Date.now()
    feed.announce({ topic: 'backup', key: id })
  }

  async function run(job: Job, by: BackupAsker) {
    const { backup_id: id, trigger } = job.shown
    if (job.abort.signal.aborted) return
    const at = now()
    show(job, { status: 'running', started_at: at })
    try {
      await note('backup.create.started', id, `Backup ${id} began`, { by: SYSTEM })
      const manifest = await maker.make({
        id,
        trigger,
        at,
        signal: job.abort.signal,
        onProgress(bytes_done, bytes_total) {
          job.shown = { ...job.shown, bytes_done, bytes_total }
          announceProgress(id)
        },
      })
      show(job, { status: 'completed', finished_at: now(), machines: manifest.machines })
      const size = job.shown.bytes_done
      const words = `Backup ${id} holds ${manifest.machines} machines (${size} bytes)`
      await note('backup.created', id, words, { by, details: describeBackupJob(job.shown) })
      await prune()
    } catch (thrown) {
      await end(job, thrown, by)
    }
  }

  async function end(job: Job, thrown: unknown, by: BackupAsker) {
    const { backup_id: id } = job.shown
    if (job.abort.signal.aborted) {
      show(job, { status: 'cancelled', finished_at: now() })
      return
    }
    const error = renderError(thrown)
    if (job.shown.status !== 'completed') show(job, { status: 'failed', finished_at: now(), error })
    const details = { ...describeBackupJob(job.shown), error }
    // Best effort: where the journal's disk is full too, the job itself still says it.
    await note('backup.failed', id, `Backup ${id} failed: ${error}`, { by, details }).catch(
      () => undefined,
    )
  }

  async function prune() {
    const { retention } = parts.settings()
    const ids = (await store.list()).map(({ backup_id }) => backup_id)
    for (const id of planBackupPruning(ids, retention)) {
      await store.remove(id)
      const details = { backup_id: id, retention }
      const words = `Backup ${id} was removed: ${retention} are kept`
      await note('backup.pruned', id, words, { by: SYSTEM, details })
      feed.announce({ topic: 'backup', key: id })
    }
  }

  async function admit(trigger: BackupTrigger, by: BackupAsker): Promise<BackupJob> {
    // A storage that cannot be read is what the job itself will say.
    const stored = new Set(await store.listTraces().catch(() => []))
    const id = nextBackupId(now(), (taken) => stored.has(taken) || jobs.has(taken))
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const job: Job = { shown: createBackupJob(id, trigger), abort: new AbortController(), ended }
    jobs.set(id, job)
    forgetOld()
    feed.announce({ topic: 'backup', key: id })
    const noted = note('backup.create.requested', id, `Backup ${id} was asked for`, { by })
    enqueue(() => run(job, by)).then(resolve, resolve)
    // Best effort: a journal that cannot be written does not stop a backup to another place.
    await noted.catch(() => undefined)
    return job.shown
  }

  function forgetOld() {
    const ended = [...jobs.values()].filter(({ shown }) => shown.finished_at !== null)
    for (const { shown } of ended.slice(0, Math.max(0, jobs.size - MOST_JOBS))) {
      jobs.delete(shown.backup_id)
    }
  }

  return {
    jobs: () => [...jobs.values()].map(({ shown }) => shown).toReversed(),
    list: () => store.list(),
    find: (id) => store.find(id),
    restoring: () => restoring,
    start(trigger, by) {
      // Ids and places in the queue in the order of the calls, however long a listing takes.
      const started = admitting.then(() => admit(trigger, by))
      admitting = started.catch(() => undefined)
      return started
    },
    async cancel(id, by) {
      const job = jobs.get(id)
      if (job === undefined) return null
      if (job.shown.finished_at !== null) return job.shown
      job.abort.abort(new Fault('cancelled', `backup ${id} was cancelled`))
      if (job.shown.status === 'queued') show(job, { status: 'cancelled', finished_at: now() })
      await job.ended
      await note('backup.create.cancelled', id, `Backup ${id} was cancelled`, { by })
      return job.shown
    },
    async awaitEnd(id) {
      const job = jobs.get(id)
      await job?.ended
      return job?.shown ?? null
    },
    async remove(id, by) {
      const stored = await store.find(id)
      if (stored === null) return null
      await store.remove(id)
      await note('backup.deleted', id, `Backup ${id} was removed`, { by })
      feed.announce({ topic: 'backup', key: id })
      return stored
    },
    async download(id, name) {
      const stored = await store.find(id)
      const file = stored?.manifest?.files.find((one) => one.name === name)
      if (file !== undefined) return { bytes: file.bytes, pieces: store.read(id, file) }
      const bare = stored?.manifest === null && name === 'inventory.json'
      const text = bare ? await store.readBare(id) : null
      return text === null ? null : { bytes: text.length, pieces: once(text) }
    },
    restore: (id, by) =>
      enqueue(async () => {
        const stored = await store.find(id)
        if (stored === null) throw new Fault('not-found', `there is no backup ${id}`)
        restoring = { backup_id: id, bytes_done: 0, bytes_total: stored.bytes }
        feed.announce({ topic: 'backup', key: id })
        try {
          const restored = await restorer.restore(stored, (bytes_done, bytes_total) => {
            restoring = { backup_id: id, bytes_done, bytes_total }
            announceProgress(id)
          })
          const words = `Backup ${id} was restored: ${restored.machines} machines`
          await note('backup.restored', id, words, { by, details: { ...restored } })
          feed.announce({ topic: 'settings' })
          return restored
        } catch (thrown) {
          const error = renderError(thrown)
          const words = `Backup ${id} could not be restored: ${error}`
          const details = { backup_id: id, error }
          await note('backup.restore.failed', id, words, { by, details }).catch(() => undefined)
          throw thrown
        } finally {
          restoring = null
          feed.announce({ topic: 'backup', key: id })
        }
      }),
    async [Symbol.asyncDispose]() {
      for (const { abort } of jobs.values()) abort.abort(new Fault('cancelled', 'the server stops'))
      await last.catch(() => undefined)
      await store[Symbol.asyncDispose]()
    },
  }
}

interface NoteMore {
  readonly by: BackupAsker
  readonly details?: EventNote['details']
}

const SYSTEM: BackupAsker = { actor: 'system', ip: null }

async function* once(bytes: Uint8Array) {
  yield bytes
}
