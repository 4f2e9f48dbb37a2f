/** Records events in the journal. */
import { renderError } from '../../core/foundation/fault.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import type { ServerServices } from './server-services.ts'
import type { Note, NoteSubject } from '../http/event-note.ts'

/** Kinds that come with each contact of a machine: its answer does not wait until they are on disk. */
const ROUTINE: ReadonlySet<string> = new Set([
  'netboot.pxe.offered',
  'netboot.pxe.plan',
  'netboot.flasher.armed',
])

export function createNotes<M extends MachineBase>({
  journal,
  log,
}: Pick<ServerServices<M>, 'journal' | 'log'>) {
  return async function noteAll(notes: readonly Note[], on: NoteSubject): Promise<void> {
    const { subject_id, actor, ip } = on
    const waited: Promise<void>[] = []
    for (const note of notes) {
      const recorded = journal
        .record({ subject_kind: 'machine', ...note, subject_id, actor, source_ip: ip })
        // What was asked for matters more than that it is on record.
        .catch((error: unknown) => log.error(`event ${note.kind}: ${renderError(error)}`))
      if (!ROUTINE.has(note.kind)) waited.push(recorded)
    }
    if (waited.length > 0) await Promise.all(waited)
  }
}
