/** Backups as jobs: made one after another, listed while this process runs, and recorded in the journal. */
import { nextBackupId } from '../../core/state/backup.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { renderSize } from '../../core/foundation/size.ts'
import { createJobs, QUEUED, type Job, type Jobs, type JobState } from '../host/jobs.ts'
import { createQueue } from '../host/queue.ts'
import type { BackupNotes } from './backup-events.ts'
import { SYSTEM, type Requester } from '../state/journal.ts'
import type { BackupMaker } from './backup-maker.ts'
import type { BackupStore } from './backup-store.ts'

type BackupTrigger = 'manual' | 'scheduled'

/** One run of this process. */
export interface BackupJob extends JobState {
  readonly backup_id: string
  readonly machines: number | null
  readonly bytes_done: number
  readonly bytes_total: number | null
  /** Its path within the backup storage. */
  readonly dest_path: string
  readonly trigger: BackupTrigger
}

export interface BackupJobs {
  /** Newest first; finished ones stay listed. */
  jobs(): readonly BackupJob[]
  /** Queues one and answers at once. */
  start(trigger: BackupTrigger, by: Requester): Promise<BackupJob>
  /** Null when no job has that id; one that has ended stays as it is. */
  cancel(id: string, by: Requester): Promise<BackupJob | null>
  /** Resolves with the job once it has ended; null when no job has that id. */
  awaitEnd(id: string): Promise<BackupJob | null>
}

interface BackupJobsDependencies {
  readonly store: Pick<BackupStore, 'listTraces'>
  readonly maker: BackupMaker
  readonly notes: BackupNotes
  /** Called after each backup that was made. */
  prune(): Promise<void>
  now(): Date
}

/** Finished jobs that stay listed. */
const MAX_JOBS = 100

export function createBackupJobs(
  parts: BackupJobsDependencies,
): BackupJobs & { readonly queue: Jobs<BackupJob> } {
  const { store, maker, notes, now } = parts
  const jobs = createJobs<BackupJob>({
    parallel: 1,
    maxListed: MAX_JOBS,
    now,
    onChange: ({ backup_id }) => notes.announce(backup_id),
    toEnded: (state) => (state.status === 'cancelled' ? { ...state, error: null } : state),
  })
  // What a crash left behind is removed first; where that fails, so will the backup, and say why.
  jobs.enqueue(() => maker.clean()).catch(() => undefined)
  const admitting = createQueue(1)

  async function admit(trigger: BackupTrigger, by: Requester): Promise<BackupJob> {
    // A storage that cannot be read is what the job itself will report.
    const stored = new Set(await store.listTraces().catch(() => []))
    const isTaken = (id: string) => stored.has(id) || jobs.find(id) !== null
    const id = nextBackupId(now().toISOString(), isTaken)
    const noted = notes.note('backup.create.requested', id, `Backup ${id} requested`, { by })
    const job = jobs.start(id, createState(id, trigger), {
      run: (own) => make(parts, own),
      onEnd: (own) => report(parts, own, by),
    })
    // Best effort: a journal that cannot be written does not stop a backup to another place.
    await noted.catch(() => undefined)
    return job.state
  }

  return {
    queue: jobs,
    jobs: () => jobs.list().map(({ state }) => state),
    // Ids and places in the queue in the order of the calls, however long a listing takes.
    start: (trigger, by) => admitting(() => admit(trigger, by)),
    async cancel(id, by) {
      const before = jobs.find(id)?.state.finished_at ?? null
      const job = await jobs.cancel(id, new Fault('cancelled', `backup ${id} was cancelled`))
      if (job !== null && before === null)
        await notes.note('backup.create.cancelled', id, `Backup ${id} was cancelled`, { by })
      return job?.state ?? null
    },
    async awaitEnd(id) {
      const job = jobs.find(id)
      await job?.ended
      return job?.state ?? null
    },
  }
}

const createState = (id: string, trigger: BackupTrigger): BackupJob => ({
  backup_id: id,
  ...QUEUED,
  machines: null,
  bytes_done: 0,
  bytes_total: null,
  dest_path: id,
  trigger,
})

async function make({ maker, notes, now }: BackupJobsDependencies, job: Job<BackupJob>) {
  const { backup_id: id, trigger } = job.state
  await notes.note('backup.create.started', id, `Backup ${id} started`, { by: SYSTEM })
  const { machines } = await maker.make({
    id,
    trigger,
    at: now().toISOString(),
    signal: job.signal,
    onProgress(bytes_done, bytes_total) {
      job.state = { ...job.state, bytes_done, bytes_total }
      notes.announceProgress(id)
    },
  })
  job.state = { ...job.state, machines }
}

/** Records how a job has ended; `cancel` itself records a cancelled one. */
async function report(parts: BackupJobsDependencies, job: Job<BackupJob>, by: Requester) {
  const { notes, prune } = parts
  const { backup_id: id, status, trigger, dest_path, machines, bytes_done, error } = job.state
  const details = { backup_id: id, trigger, dest_path, machines, bytes_done, error }
  const noteFailure = (thrown: unknown) => {
    const words = renderError(thrown)
    const more = { by, details: { ...details, error: words } }
    return notes.note('backup.failed', id, `Backup ${id} failed: ${words}`, more)
  }
  if (status === 'failed') return noteFailure(job.failure)
  if (status === 'cancelled') return
  try {
    const words = `Backup ${id} completed: ${machines} machines, ${renderSize(bytes_done)}`
    await notes.note('backup.created', id, words, { by, details })
    await prune()
  } catch (thrown) {
    await noteFailure(thrown)
  }
}
