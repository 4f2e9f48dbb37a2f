/** One run of the backup maker, as it is listed and put on record. */

export type BackupTrigger = 'manual' | 'scheduled'
type BackupStatus = 'queued' | 'running' | 'completed' | 'failed' | 'cancelled'

/** One run of this process. Times are ISO. */
export interface BackupJob {
  readonly backup_id: string
  readonly status: BackupStatus
  readonly started_at: string | null
  readonly finished_at: string | null
  readonly machines: number | null
  readonly bytes_done: number
  readonly bytes_total: number | null
  /** Where it lies below the place that backups go to. */
  readonly dest_path: string
  readonly trigger: BackupTrigger
  readonly error: string | null
}

export const createBackupJob = (id: string, trigger: BackupTrigger): BackupJob => ({
  backup_id: id,
  status: 'queued',
  started_at: null,
  finished_at: null,
  machines: null,
  bytes_done: 0,
  bytes_total: null,
  dest_path: id,
  trigger,
  error: null,
})

/** What its events carry. */
export const describeBackupJob = ({
  backup_id,
  trigger,
  dest_path,
  machines,
  bytes_done,
  error,
}: BackupJob) => ({
  backup_id,
  trigger,
  dest_path,
  machines,
  bytes_done,
  error,
})
