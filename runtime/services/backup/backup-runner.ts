/** Carries out one queued backup, and tells of its beginning, its progress and its end. */
import { renderError } from '../../core/foundation/fault.ts'
import { describeBackupJob, type BackupJob } from './backup-job.ts'
import type { BackupMaker } from './backup-maker.ts'
import { SYSTEM, type BackupAsker, type BackupNotes } from './backup-events.ts'

/** A backup of this process: as it is listed, and what ends it. */
export interface Job {
  shown: BackupJob
  readonly abort: AbortController
  readonly ended: Promise<void>
}

export interface BackupRunner {
  /** Changes what is listed of a job. */
  show(job: Job, change: Partial<BackupJob>): void
  /** Never throws for a backup that failed: the job says so. */
  run(job: Job, by: BackupAsker): Promise<void>
}

interface RunnerDependencies {
  readonly maker: BackupMaker
  readonly notes: BackupNotes
  /** After each that was made. */
  prune(): Promise<void>
  /** ISO time. */
  now(): string
}

export function createBackupRunner({ maker, notes, prune, now }: RunnerDependencies): BackupRunner {
  const { note } = notes

  function show(job: Job, change: Partial<BackupJob>) {
    job.shown = { ...job.shown, ...change }
    notes.announce(job.shown.backup_id)
  }

  async function make(job: Job, at: string) {
    const { backup_id: id, trigger } = job.shown
    await note('backup.create.started', id, `Backup ${id} began`, { by: SYSTEM })
    return maker.make({
      id,
      trigger,
      at,
      signal: job.abort.signal,
      onProgress(bytes_done, bytes_total) {
        job.shown = { ...job.shown, bytes_done, bytes_total }
        notes.announceProgress(id)
      },
    })
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

  return {
    show,
    async run(job, by) {
      const { backup_id: id } = job.shown
      if (job.abort.signal.aborted) return
      const at = now()
      show(job, { status: 'running', started_at: at })
      try {
        const { machines } = await make(job, at)
        show(job, { status: 'completed', finished_at: now(), machines })
        const words = `Backup ${id} holds ${machines} machines (${job.shown.bytes_done} bytes)`
        await note('backup.created', id, words, { by, details: describeBackupJob(job.shown) })
        await prune()
      } catch (thrown) {
        await end(job, thrown, by)
      }
    },
  }
}
