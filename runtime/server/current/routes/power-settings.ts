/** How the power of machines is reached: the BMC of each, the credentials of labels and of all, lists as CSV. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { MAX_CSV_BYTES, parseBmcCsv } from '../../../fleet/power/rules/bmc-csv.ts'
import {
  BmcUpsertSchema,
  CredentialSchema,
  queueOf,
  renderBmc,
} from '../../../fleet/power/rules/bmc.ts'
import { renderError } from '../../../kit/foundation/fault.ts'
import { json, nothing } from '../../../kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '../../../kit/web/answers/checked.ts'
import { refuse } from '../../../kit/web/answers/faults.ts'
import type { Route } from '../../../kit/web/answers/route.ts'
import type { Site } from '../../routes/site.ts'
import type { PowerControl } from '../../power/power-control.ts'
import { LabelSchema } from '../rules/label.ts'
import type { Machine } from '../rules/machine.ts'
import { PowerViewSchema } from '../../power/rules/power-request.ts'
import { showPower } from './power.ts'

const USERS = z.object({
  all: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
})

/** Lists the routes that say how the power of machines is reached. */
export const powerSettingRoutes = (
  site: Site<Machine>,
  control: PowerControl,
): readonly Route[] => [
  ...machineRoutes(site, control),
  importRoute(site, control),
  ...credentialRoutes(site, control),
  ...labelRoutes(site, control),
]

function machineRoutes(site: Site<Machine>, control: PowerControl): readonly Route[] {
  const { book } = control
  return [
    {
      method: 'PUT',
      path: '/machines/:mac/power',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Says how the power of a machine is reached',
        body: renderSchema(BmcUpsertSchema, 'input'),
        answers: { 200: renderSchema(PowerViewSchema, 'output') },
      },
      async handle(event, body) {
        const { mac } = site.findMachine(readMac(event))
        const { credential, ...bmc } = checked(BmcUpsertSchema, body)
        await book.save(new Map([[mac, { bmc, credential }]]))
        control.forget(mac)
        await recordEvent(site, event, mac, `The power of ${mac} is reached by ${renderBmc(bmc)}`)
        return json(showPower(control, mac))
      },
    },
    {
      method: 'DELETE',
      path: '/machines/:mac/power',
      access: 'admin',
      doc: { summary: 'Forgets how the power of a machine is reached', answers: { 204: null } },
      async handle(event) {
        const mac = readMac(event)
        if (!(await book.remove(mac))) throw refuse(404, `no way to the power of ${mac} is set`)
        control.forget(mac)
        await recordEvent(site, event, mac, `How the power of ${mac} is reached was forgotten`)
        return nothing()
      },
    },
    {
      method: 'DELETE',
      path: '/machines/:mac/power/certificate',
      access: 'admin',
      doc: {
        summary: 'Forgets the certificate of its BMC: the next one that it shows is pinned',
        answers: { 204: null },
      },
      async handle(event) {
        const mac = readMac(event)
        const entry = book.find(mac)
        if (entry === null) throw refuse(404, `no way to the power of ${mac} is set`)
        await book.learn(mac, { certificate: null }, queueOf(entry.bmc))
        await recordEvent(site, event, mac, `The certificate of the BMC of ${mac} was forgotten`)
        return nothing()
      },
    },
  ]
}

function importRoute(site: Site<Machine>, { book, forget }: PowerControl): Route {
  return {
    method: 'POST',
    path: '/power/import',
    access: 'admin',
    takes: 'bytes',
    most: MAX_CSV_BYTES,
    doc: {
      summary:
        'Takes a list of BMCs as CSV: mac, way, address, user, password, firmware, outlet, system',
      answers: { 200: { type: 'object' } },
      refuses: [422],
    },
    async handle(event, bytes) {
      const list = parseBmcCsv(await readText(bytes))
      if (!list.ok) throw refuse(422, list.refusal.join('; '))
      const unknown = [...list.value.keys()].filter((mac) => site.machines.peek(mac) === null)
      if (unknown.length > 0) {
        const [first = ''] = unknown
        throw refuse(
          422,
          `${unknown.length} machines of the list are unknown, the first is ${first}`,
        )
      }
      await book.save(list.value)
      for (const mac of list.value.keys()) forget(mac)
      await recordEvent(site, event, null, `The BMCs of ${list.value.size} machines were imported`)
      return json({ imported: list.value.size })
    },
  }
}

function credentialRoutes(site: Site<Machine>, { book }: PowerControl): readonly Route[] {
  const body = renderSchema(CredentialSchema, 'input')
  return [
    {
      method: 'GET',
      path: '/power/credentials',
      access: 'admin',
      doc: {
        summary: 'The users with which BMCs of a label, or of all machines, are opened',
        answers: { 200: renderSchema(USERS, 'output') },
      },
      handle: () => json(book.listUsers()),
    },
    {
      method: 'PUT',
      path: '/power/credentials',
      access: 'admin',
      takes: 'json',
      doc: { summary: 'Sets what opens the BMCs of all machines', body, answers: { 204: null } },
      async handle(event, sent) {
        await book.saveForAll(checked(CredentialSchema, sent))
        await recordEvent(site, event, null, 'The credentials for all BMCs were set')
        return nothing()
      },
    },
    {
      method: 'DELETE',
      path: '/power/credentials',
      access: 'admin',
      doc: { summary: 'Forgets what opens the BMCs of all machines', answers: { 204: null } },
      async handle(event) {
        await book.saveForAll(null)
        await recordEvent(site, event, null, 'The credentials for all BMCs were removed')
        return nothing()
      },
    },
  ]
}

function labelRoutes(site: Site<Machine>, { book }: PowerControl): readonly Route[] {
  const body = renderSchema(CredentialSchema, 'input')
  return [
    {
      method: 'PUT',
      path: '/power/credentials/labels/:label',
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Sets what opens the BMCs of machines with a label',
        body,
        answers: { 204: null },
        isNeverMissing: true,
      },
      async handle(event, sent) {
        const label = readLabel(event)
        await book.saveForLabel(label, checked(CredentialSchema, sent))
        await recordEvent(
          site,
          event,
          null,
          `The credentials for BMCs with the label ${label} were set`,
        )
        return nothing()
      },
    },
    {
      method: 'DELETE',
      path: '/power/credentials/labels/:label',
      access: 'admin',
      doc: {
        summary: 'Forgets what opens the BMCs of a label',
        answers: { 204: null },
      },
      async handle(event) {
        const label = nameLabel(event)
        const isKnown = Object.hasOwn(book.listUsers().labels, label)
        if (!isKnown) throw refuse(404, 'this label has no credentials')
        await book.saveForLabel(label, null)
        await recordEvent(
          site,
          event,
          null,
          `The credentials for BMCs with the label ${label} were removed`,
        )
        return nothing()
      },
    },
  ]
}

const nameLabel = (event: H3Event) => getRouterParam(event, 'label', { decode: true }) ?? ''

const readLabel = (event: H3Event) => checked(LabelSchema, nameLabel(event), 'query')

/** Puts a change on record, without what opens anything. */
function recordEvent(site: Site<Machine>, event: H3Event, mac: string | null, summary: string) {
  const kind = 'settings.power.updated'
  const on = { subject_id: mac, ...site.by(event) }
  return site.recordAll([{ kind, subject_kind: 'settings', summary, details: null }], on)
}

async function readText(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks))
  } catch (thrown) {
    throw refuse(422, `the list is no UTF-8 text: ${renderError(thrown)}`)
  }
}
