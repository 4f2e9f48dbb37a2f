/** Admits machines: the line decides whether their token suffices, this responds and records it. */
import type { Mac } from '../../kit/net/rules/mac.ts'
import { refuse } from '../../kit/web/answers/faults.ts'
import type { ServerBase, Site } from './site.ts'
import type { Contact, MachineRequest } from './transition.ts'

/** What is refused is counted, never slowed: a rack behind one address must not lose its `done`. */
export function createAdmission({
  line,
  machines,
  metrics,
  recordAll,
}: ServerBase): Site['admitMachine'] {
  async function turnAway(
    mac: Mac,
    request: MachineRequest,
    { ip }: Contact,
    reason: string,
  ): Promise<never> {
    const summary = `${mac} was not admitted: ${reason}`
    const on = { subject_id: mac, actor: 'pxe-client', ip } as const
    await recordAll([{ kind: 'machine.token.refused', summary, details: { request, reason } }], on)
    metrics.count('flasher_boot_tokens_refused_total', { request })
    throw refuse(401, reason, { headers: { 'www-authenticate': 'Bearer' } })
  }

  return (mac, request, contact) => {
    const admitted = line.admit({ mac, machine: machines.peek(mac), request }, contact)
    if (!admitted.ok) return turnAway(mac, request, contact, admitted.refusal)
    if (admitted.value.length === 0) return undefined
    return recordAll(admitted.value, { subject_id: mac, actor: 'pxe-client', ip: contact.ip })
  }
}
