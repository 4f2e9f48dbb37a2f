/** Backups as jobs: made one after another, listed also after a restart, and recorded in the journal. */
import { z } from 'zod'
import { nextBackupId } from './rules/backup.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import {
  createJobs,
  isOver,
  JobStateSchema,
  QUEUED,
  type Job,
  type JobRecords,
  type Jobs,
} from '#kit/host/jobs.ts'
import { createQueue } from '#kit/host/queue.ts'
import type { BackupEvents } from './backup-events.ts'
import { SYSTEM, type Requester } from '#fleet/state/journal.ts'
import type { BackupMaker } from './backup-maker.ts'
import type { BackupStore } from './backup-store.ts'

export const BackupJobSchema = JobStateSchema.extend({
  backup_id: z.string(),
  machines: z.number().nullable(),
  bytes_done: z.number(),
  bytes_total: z.number().nullable(),
  dest_path: z.string(),
  trigger: z.enum(['manual', 'scheduled']),
})

export type BackupJob = Readonly<z.infer<typeof BackupJobSchema>>
type BackupTrigger = BackupJob['trigger']

export interface BackupJobs {
  /** Newest first, finished ones too. */
  jobs(): readonly BackupJob[]
  start(trigger: BackupTrigger, by: Requester): Promise<BackupJob>
  /** Null: no such job. A finished one stays as it is. */
  cancel(id: string, by: Requester): Promise<BackupJob | null>
  /** Resolves when the job has ended; null: no such job. */
  awaitEnd(id: string): Promise<BackupJob | null>
}

interface BackupJobsDependencies {
  readonly store: Pick<BackupStore, 'listTraces'>
  readonly maker: BackupMaker
  readonly events: BackupEvents
  /** Called after each successful backup. */
  prune(made: string): Promise<void>
  now(): Date
  /** Jobs of the process before are listed; one that was cut off has failed. */
  readonly records?: JobRecords<BackupJob> | undefined
}

const MAX_JOBS = 100

export function createBackupJobs(
  parts: BackupJobsDependencies,
): BackupJobs & { readonly queue: Jobs<BackupJob> } {
  const { store, maker, events, now } = parts
  const jobs = createJobs<BackupJob>({
    parallel: 1,
    maxListed: MAX_JOBS,
    now,
    onChange: ({ backup_id }) => events.announce(backup_id),
    toEnded: (state) => (state.status === 'cancelled' ? { ...state, error: null } : state),
    records: parts.records,
    onCutOff: (state) => recordFailure(events, state, SYSTEM),
  })
  const cancelledBy = new Map<string, Requester>()
  // A crash's leftovers go first; if that fails, the backup fails, too, and says why.
  jobs.enqueue(() => maker.clean()).catch(() => undefined)
  const admitting = createQueue(1)

  async function admit(trigger: BackupTrigger, by: Requester): Promise<BackupJob> {
    // If the storage cannot be read, the job itself reports it.
    const stored = new Set(await store.listTraces().catch(() => []))
    const isTaken = (id: string) => stored.has(id) || jobs.find(id) !== null
    const id = nextBackupId(now().toISOString(), isTaken)
    const noted = events.record('backup.create.requested', id, `Backup ${id} requested`, { by })
    const job = jobs.start(id, createState(id, trigger), {
      run: (own) => make(parts, own),
      async onEnd(own) {
        const canceller = cancelledBy.get(id) ?? SYSTEM
        cancelledBy.delete(id)
        await report(parts, own.state, own.state.status === 'cancelled' ? canceller : by)
      },
    })
    // Best effort: a journal that cannot be written does not stop a backup to another place.
    await noted.catch(() => undefined)
    return job.state
  }

  return {
    queue: jobs,
    jobs: () => jobs.list().map(({ state }) => state),
    // One at a time, so that ids and places in the queue follow the order of the calls.
    start: (trigger, by) => admitting(() => admit(trigger, by)),
    async cancel(id, by) {
      const job = jobs.find(id)
      if (job === null || isOver(job.state)) return job?.state ?? null
      cancelledBy.set(id, by)
      await jobs.cancel(id, new Fault('cancelled', `backup ${id} was cancelled`))
      return job.state
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

async function make({ maker, events, now }: BackupJobsDependencies, job: Job<BackupJob>) {
  const { backup_id: id, trigger } = job.state
  await events.record('backup.create.started', id, `Backup ${id} started`, { by: SYSTEM })
  const { machines } = await maker.make({
    id,
    trigger,
    at: now().toISOString(),
    signal: job.signal,
    onProgress(bytes_done, bytes_total) {
      job.state = { ...job.state, bytes_done, bytes_total }
      events.announceProgress(id)
    },
  })
  job.state = { ...job.state, machines }
}

async function report(
  { events, prune }: BackupJobsDependencies,
  state: BackupJob,
  by: Requester,
): Promise<void> {
  const { backup_id: id, status, machines, bytes_done } = state
  if (status === 'failed') return recordFailure(events, state, by)
  if (status === 'cancelled') {
    const why = by === SYSTEM ? ': the server stopped' : ''
    return events.record('backup.create.cancelled', id, `Backup ${id} was cancelled${why}`, { by })
  }
  try {
    const words = `Backup ${id} completed: ${machines} machines, ${renderSize(bytes_done)}`
    await events.record('backup.created', id, words, { by, details: detailsOf(state) })
    await prune(id)
  } catch (thrown) {
    await recordFailure(events, { ...state, error: renderError(thrown) }, by)
  }
}

const recordFailure = (events: BackupEvents, state: BackupJob, by: Requester) =>
  events.record(
    'backup.failed',
    state.backup_id,
    `Backup ${state.backup_id} failed: ${state.error}`,
    {
      by,
      details: detailsOf(state),
    },
  )

const detailsOf = ({ backup_id, trigger, dest_path, machines, bytes_done, error }: BackupJob) => ({
  backup_id,
  trigger,
  dest_path,
  machines,
  bytes_done,
  error,
})
