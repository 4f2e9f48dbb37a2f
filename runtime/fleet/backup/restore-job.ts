/** Restores a stored backup as a job: shows its progress, and records the outcome. */
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { BackupEvents } from './backup-events.ts'
import { renderDisarmed } from './disarming.ts'
import type { Requester } from '#fleet/state/journal.ts'
import type { Foreseen, Restored, Restorer } from './restore.ts'
import type { BackupStore, StoredBackup } from './backup-store.ts'
import type { Changes } from '#kit/host/changes.ts'
import type { Jobs } from '#kit/host/jobs.ts'

interface Restoring {
  readonly backup_id: string
  readonly bytes_done: number
  readonly bytes_total: number | null
}

export interface BackupRestores {
  /** Waits for queued backups; the former state stays as `.bak`. */
  restore(id: string, by: Requester): Promise<Restored>
  restoring(): Restoring | null
  /** Null: no such backup. */
  foresee(id: string): Promise<Foreseen | null>
}

interface RestoresDependencies {
  readonly store: Pick<BackupStore, 'find'>
  readonly restorer: Restorer
  readonly events: BackupEvents
  readonly queue: Pick<Jobs<never>, 'enqueue'>
  readonly changes: Changes
}

export function createBackupRestores(parts: RestoresDependencies): BackupRestores {
  const { store, restorer, events, queue, changes } = parts
  let restoring: Restoring | null = null

  async function restore(stored: StoredBackup, by: Requester): Promise<Restored> {
    const { backup_id: id } = stored
    const restored = await restorer.restore(stored, (bytes_done, bytes_total) => {
      restoring = { backup_id: id, bytes_done, bytes_total }
      events.announceProgress(id)
    })
    const { machines, disarmed } = restored
    const words =
      `Backup ${id} was restored: ${machines} machines. ${renderDisarmed(disarmed)}`.trim()
    await events.record('backup.restored', id, words, { by, details: { ...restored } })
    changes.announce({ topic: 'settings' })
    return restored
  }

  async function recordFailure(id: string, thrown: unknown, by: Requester) {
    const error = renderError(thrown)
    const words = `Backup ${id} could not be restored: ${error}`
    const details = { backup_id: id, error }
    await events.record('backup.restore.failed', id, words, { by, details }).catch(() => undefined)
  }

  return {
    restoring: () => restoring,
    async foresee(id) {
      const stored = await store.find(id)
      return stored === null ? null : await restorer.foresee(stored)
    },
    restore: (id, by) =>
      queue.enqueue(async () => {
        const stored = await store.find(id)
        if (stored === null) throw new Fault('not-found', `there is no backup ${id}`)
        restoring = { backup_id: id, bytes_done: 0, bytes_total: stored.bytes }
        events.announce(id)
        try {
          return await restore(stored, by)
        } catch (thrown) {
          await recordFailure(id, thrown, by)
          throw thrown
        } finally {
          restoring = null
          events.announce(id)
        }
      }),
  }
}
