/** Admits machines: the line decides whether their token suffices, this responds and records it. */
import { refuse } from '../http/faults.ts'
import type { Site } from './site.ts'
import type { MachineBase } from '../../core/machine/machine.ts'

/** What is refused is counted, never slowed: a rack behind one address must not lose its `done`. */
export function createAdmission<M extends MachineBase>({
  line,
  machines,
  metrics,
  noteAll,
}: Pick<Site<M>, 'line' | 'machines' | 'metrics' | 'noteAll'>): Site<M>['admitMachine'] {
  return async (mac, request, contact) => {
    const admitted = line.admit({ mac, machine: machines.peek(mac), request }, contact)
    const on = { subject_id: mac, actor: 'pxe-client', ip: contact.ip } as const
    if (admitted.ok) {
      if (admitted.value.length > 0) await noteAll(admitted.value, on)
      return
    }
    const reason = admitted.refusal
    const summary = `${mac} was not admitted: ${reason}`
    await noteAll(
      [{ kind: 'machine.token.refused', summary, details: { wish: request, reason } }],
      on,
    )
    metrics.count('flasher_boot_tokens_refused_total', { wish: request })
    throw refuse(401, reason, { headers: { 'www-authenticate': 'Bearer' } })
  }
}
