/** Records events in the journal. */
import { renderError } from '../../kit/foundation/fault.ts'
import type { ServerServices } from './server-services.ts'
import type { NoteAll } from '../../kit/web/answers/event-note.ts'

/** Kinds that come with each contact of a machine: its answer does not wait until they are on disk. */
const ROUTINE: ReadonlySet<string> = new Set([
  'netboot.pxe.offered',
  'netboot.pxe.plan',
  'netboot.flasher.armed',
])

export const createNotes =
  ({ journal, log }: Pick<ServerServices, 'journal' | 'log'>): NoteAll =>
  (notes, { subject_id, actor, ip: source_ip }) => {
    const storing = journal.recordOrCount(
      notes.map((note) => ({ subject_kind: 'machine', ...note, subject_id, actor, source_ip })),
    )
    // What was asked for matters more than that it is on record.
    const recorded = storing?.catch((error: unknown) =>
      log.error(`event ${notes.map(({ kind }) => kind).join(', ')}: ${renderError(error)}`),
    )
    return notes.every(({ kind }) => ROUTINE.has(kind)) ? undefined : recorded
  }
