/** Records events in the journal. */
import type { Eventual } from '../../core/foundation/eventual.ts'
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
  return function noteAll(notes: readonly Note[], on: NoteSubject): Eventual<void> {
    const { subject_id, actor, ip } = on
    const waited: Promise<void>[] = []
    for (const note of notes) {
      const storing = journal.recordOrCount({
        subject_kind: 'machine',
        ...note,
        subject_id,
        actor,
        source_ip: ip,
      })
      if (storing === null) continue
      // What was asked for matters more than that it is on record.
      const recorded = storing.catch((error: unknown) =>
        log.error(`event ${note.kind}: ${renderError(error)}`),
      )
      if (!ROUTINE.has(note.kind)) waited.push(recorded)
    }
    return waited.length === 0 ? undefined : Promise.all(waited).then(() => undefined)
  }
}
