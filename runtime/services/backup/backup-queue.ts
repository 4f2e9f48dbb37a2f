/** The line in which backups and restores wait: one thing at a time, in the order of the calls. */
import { nextBackupId } from '../../core/state/backup.ts'
import { Fault } from '../../core/foundation/fault.ts'
import { createBackupJob, type BackupJob, type BackupTrigger } from './backup-job.ts'
import type { BackupAsker, BackupNotes } from './backup-events.ts'
import type { BackupRunner, Job } from './backup-runner.ts'
import type { BackupStore } from './backup-store.ts'

export interface BackupQueue {
  /** Newest first. */
  jobs(): readonly BackupJob[]
  start(trigger: BackupTrigger, by: BackupAsker): Promise<BackupJob>
  cancel(id: string, by: BackupAsker): Promise<BackupJob | null>
  awaitEnd(id: string): Promise<BackupJob | null>
  /** Does something else when it is its turn. */
  enqueue<T>(work: () => Promise<T>): Promise<T>
  /** Cancels what waits and what runs; resolves when nothing does. */
  end(): Promise<void>
}

interface QueueDependencies {
  readonly store: Pick<BackupStore, 'listTraces'>
  readonly runner: BackupRunner
  readonly notes: BackupNotes
  /** What has to be over before anything else begins. */
  readonly first: Promise<unknown>
  /** ISO time. */
  now(): string
}

/** Finished jobs that stay listed. */
const MAX_JOBS = 100

export function createBackupQueue(parts: QueueDependencies): BackupQueue {
  const { store, runner, notes, now } = parts
  const jobs = new Map<string, Job>()
  let last = parts.first
  last.catch(() => undefined)
  let admitting: Promise<unknown> = Promise.resolve()

  /** What failed before is no reason to fail. */
  function enqueue<T>(work: () => Promise<T>): Promise<T> {
    const next = last.then(work, work)
    last = next
    return next
  }

  async function admit(trigger: BackupTrigger, by: BackupAsker): Promise<BackupJob> {
    // A storage that cannot be read is what the job itself will say.
    const stored = new Set(await store.listTraces().catch(() => []))
    const id = nextBackupId(now(), (taken) => stored.has(taken) || jobs.has(taken))
    const { promise: ended, resolve } = Promise.withResolvers<void>()
    const job: Job = { shown: createBackupJob(id, trigger), abort: new AbortController(), ended }
    jobs.set(id, job)
    forgetOld()
    notes.announce(id)
    const noted = notes.note('backup.create.requested', id, `Backup ${id} was asked for`, { by })
    enqueue(() => runner.run(job, by)).then(resolve, resolve)
    // Best effort: a journal that cannot be written does not stop a backup to another place.
    await noted.catch(() => undefined)
    return job.shown
  }

  function forgetOld() {
    const ended = [...jobs.values()].filter(({ shown }) => shown.finished_at !== null)
    for (const { shown } of ended.slice(0, Math.max(0, jobs.size - MAX_JOBS))) {
      jobs.delete(shown.backup_id)
    }
  }

  return {
    enqueue,
    jobs: () => [...jobs.values()].map(({ shown }) => shown).toReversed(),
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
      if (job.shown.status === 'queued')
        runner.show(job, { status: 'cancelled', finished_at: now() })
      await job.ended
      await notes.note('backup.create.cancelled', id, `Backup ${id} was cancelled`, { by })
      return job.shown
    },
    async awaitEnd(id) {
      const job = jobs.get(id)
      await job?.ended
      return job?.shown ?? null
    },
    async end() {
      for (const { abort } of jobs.values()) abort.abort(new Fault('cancelled', 'the server stops'))
      await last.catch(() => undefined)
    },
  }
}
