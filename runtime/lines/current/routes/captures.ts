/** `/machines/{mac}/capture`: orders an image of a disk of the machine, or cancels the order. */
import type { H3Event } from 'h3'
import type { Site } from '../../../web/fleet/site.ts'
import { checked, readMac, renderSchema } from '../../../web/http/checked.ts'
import { refuse } from '../../../web/http/faults.ts'
import type { Route } from '../../../web/http/route.ts'
import { CaptureFieldsSchema } from '../rules/action.ts'
import type { Machine } from '../rules/machine.ts'

export function captureRoutes({ fleet, line, machines, by }: Site<Machine>): readonly Route[] {
  async function act(event: H3Event, action: string, parameters: object): Promise<unknown> {
    const mac = readMac(event)
    const acted = await fleet.act(mac, { action, parameters }, by(event))
    if (acted.result === 'missing') throw refuse(404, `no machine record for ${mac}`)
    if (acted.result === 'refused') throw refuse(409, acted.reason)
    const machine = machines.peek(mac) ?? acted.machine
    return machine && line.toWire(machine)
  }

  const answers = { 200: 'Machine' }
  return [
    {
      method: 'POST',
      path: '/machines/:mac/capture',
      access: 'flash',
      takes: 'json',
      doc: {
        summary: 'Captures a disk of the machine at its next network boot',
        body: renderSchema(CaptureFieldsSchema, 'input'),
        answers,
        refuses: [409],
      },
      handle: (event, body) => act(event, 'capture', checked(CaptureFieldsSchema, body)),
    },
    {
      method: 'DELETE',
      path: '/machines/:mac/capture',
      access: 'flash',
      doc: { summary: 'Cancels an ordered capture', answers, refuses: [409] },
      handle: (event) => act(event, 'cancel-capture', {}),
    },
  ]
}
