/** Events about backups, for the journal and for pages. */
import type { Changes } from '#kit/host/changes.ts'
import type { JournalEntry, Journal } from '#fleet/state/journal.ts'
import type { Requester } from '#fleet/state/journal.ts'

interface EventMore {
  readonly by: Requester
  readonly details?: JournalEntry['details']
}

export type BackupEvents = ReturnType<typeof createBackupEvents>

/** At least this long between two announcements of progress. */
const PROGRESS_MS = 1000

export function createBackupEvents(journal: Journal, changes: Changes) {
  let announcedAt = 0
  const announce = (id: string) => changes.announce({ topic: 'backup', key: id })
  return {
    announce,
    /** Announced once a second at most. */
    announceProgress(id: string) {
      if (Math.abs(Date.now() - announcedAt) < PROGRESS_MS) return
      announcedAt = Date.now()
      announce(id)
    },
    record: (
      kind: string,
      id: string,
      summary: string,
      { by, details = { backup_id: id } }: EventMore,
    ) =>
      journal.record({
        kind,
        subject_kind: 'backup',
        subject_id: id,
        actor: by.actor,
        source_ip: by.ip,
        summary,
        details,
      }),
  }
}
