/** Makes, lists, prunes and restores backups, one job at a time. */
import { Readable } from 'node:stream'
import { planBackupPruning, type BackupSettings } from './rules/backup.ts'
import { createBackupJobs, type BackupJob, type BackupJobs } from './backup-job.ts'
import type { BackupMaker } from './backup-maker.ts'
import { createBackupEvents, type BackupEvents } from './backup-events.ts'
import { SYSTEM, type Requester } from '#fleet/state/journal.ts'
import { createBackupRestores, type BackupRestores } from './restore-job.ts'
import type { Restorer } from './restore.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { JobRecords } from '#kit/host/jobs.ts'
import type { Journal } from '#fleet/state/journal.ts'

export interface Backups
  extends BackupJobs, BackupRestores, Pick<BackupStore, 'list' | 'find'>, AsyncDisposable {
  /** Null: no such backup. */
  remove(id: string, by: Requester): Promise<StoredBackup | null>
  /** Each piece is checked; null: no such file. */
  download(id: string, name: string): Promise<BackupDownload | null>
}

export interface BackupDownload {
  /** Null: not known. */
  readonly bytes: number | null
  readonly pieces: AsyncIterable<Uint8Array>
}

interface BackupDependencies {
  readonly store: BackupStore
  readonly maker: BackupMaker
  readonly restorer: Restorer
  readonly journal: Journal
  readonly changes: Changes
  settings(): BackupSettings
  now?(): Date
  readonly records?: JobRecords<BackupJob> | undefined
}

/** Disposing cancels a running backup, waits for a restore, and closes the store. */
export function createBackups(parts: BackupDependencies): Backups {
  const { store, maker, restorer, journal, changes } = parts
  const { now = () => new Date() } = parts
  const events = createBackupEvents(journal, changes)
  const { queue, ...jobs } = createBackupJobs({
    store,
    maker,
    events,
    now,
    records: parts.records,
    prune: (made) => prune(parts, events, made),
  })
  return {
    ...jobs,
    ...createBackupRestores({ store, restorer, events, queue, changes }),
    list: store.list,
    find: store.find,
    async remove(id, by) {
      const stored = await store.find(id)
      if (stored === null) return null
      await store.remove(id)
      await events.record('backup.deleted', id, `Backup ${id} was removed`, { by })
      events.announce(id)
      return stored
    },
    async download(id, name) {
      const stored = await store.find(id)
      const file = stored?.manifest?.files.find((one) => one.name === name)
      if (file !== undefined) return { bytes: file.bytes, pieces: store.read(id, file) }
      const bare = stored?.manifest === null && name === 'inventory.json'
      const text = bare ? await store.readBare(id) : null
      return text === null ? null : { bytes: text.length, pieces: Readable.from([text]) }
    },
    async [Symbol.asyncDispose]() {
      await queue[Symbol.asyncDispose]()
      await queue.enqueue(async () => undefined)
      await store[Symbol.asyncDispose]()
    },
  }
}

async function prune(
  { store, settings }: BackupDependencies,
  events: BackupEvents,
  made: string,
): Promise<void> {
  const { retention } = settings()
  const ids = (await store.list()).map(({ backup_id }) => backup_id)
  for (const id of planBackupPruning(ids, retention, made)) {
    await store.remove(id)
    const details = { backup_id: id, retention }
    const words = `Backup ${id} was removed: ${retention} are kept`
    await events.record('backup.pruned', id, words, { by: SYSTEM, details })
    events.announce(id)
  }
}
