/** Lets machines in: the line says whether what they show is enough, this answers and records it. */
import type { Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { refuse } from '../http/faults.ts'
import type { ServerServices } from './server-services.ts'
import type { Contact, MachineRequest } from './transition.ts'
import type { Note, NoteSubject } from '../http/event-note.ts'
import type { Metrics } from '../http/metrics.ts'

/** What is refused is counted, never slowed: a rack behind one address must not lose its `done`. */
export function createAdmission<M extends MachineBase>(
  {
    line,
    machines,
    metrics,
  }: Pick<ServerServices<M>, 'line' | 'machines'> & { readonly metrics: Metrics },
  noteAll: (notes: readonly Note[], on: NoteSubject) => Promise<void>,
) {
  return async (mac: Mac, wish: MachineRequest, contact: Contact): Promise<void> => {
    const machine = await machines.find(mac)
    const admitted = line.admit({ mac, machine, wish }, contact)
    const notes = admitted.ok ? admitted.value : [renderRefused(mac, wish, admitted.refusal)]
    if (notes.length > 0) {
      await noteAll(notes, { subject_id: mac, actor: 'pxe-client', ip: contact.ip })
    }
    if (admitted.ok) return
    metrics.count('flasher_boot_tokens_refused_total', { wish })
    throw refuse(401, admitted.refusal, { headers: { 'www-authenticate': 'Bearer' } })
  }
}

const renderRefused = (mac: Mac, wish: MachineRequest, reason: string): Note => ({
  kind: 'machine.token.refused',
  summary: `${mac} was not admitted: ${reason}`,
  details: { wish, reason },
})
