/** Puts what happened on record, and tells the pages that there is news. */
import { renderError } from '../core/fault.ts'
import type { MachineBase } from '../core/machine.ts'
import type { Note, NoteSubject, ServerParts } from './line.ts'

export function createNotes<M extends MachineBase>({
  journal,
  feed,
  log,
}: Pick<ServerParts<M>, 'journal' | 'feed' | 'log'>) {
  /** What is promised is on disk by then; the rest follows. */
  return async function noteAll(notes: readonly Note[], on: NoteSubject): Promise<void> {
    const { subject_id, actor, ip } = on
    const waited = notes.map(async ({ isRoutine = false, ...note }) => {
      const recorded = journal
        .record({ subject_kind: 'machine', ...note, subject_id, actor, source_ip: ip })
        // The machine goes on: what it asked for matters more than that it is on record.
        .catch((error: unknown) => log.error(`event ${note.kind}: ${renderError(error)}`))
        .then(() => feed.announce({ topic: 'event' }))
      if (!isRoutine) await recorded
    })
    await Promise.all(waited)
  }
}
