/** How the power of machines is reached: the BMC of each, the credentials of labels and of all, lists as CSV. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import {
  MAX_CSV_BYTES,
  parseBmcCsv,
  AddressesSchema,
  BmcUpsertSchema,
  CredentialSchema,
  queueOf,
  renderBmc,
  type PowerChange,
} from '#fleet/power/rules/bmc.ts'
import { describeListing } from '#fleet/power/rules/power.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { json, nothing } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Site } from '#server/routes/site.ts'
import type { PowerControl } from '#server/power/power-control.ts'
import { LabelSchema } from '#fleet/machine/rules/label.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { PowerViewSchema } from '#server/power/rules/power-request.ts'
import { showPower } from './power-routes.ts'

const USERS = z.object({
  all: z.string().nullable(),
  labels: z.record(z.string(), z.string()),
  addresses: z.record(z.string(), z.array(z.string())),
})

const LABEL_BODY = CredentialSchema.partial()
  .extend({ addresses: AddressesSchema.min(1).optional() })
  .describe('Omitted fields keep their value')

export const powerSettingRoutes = (
  site: Site<Machine>,
  control: PowerControl,
): readonly Route[] => [
  ...machineRoutes(site, control),
  importRoute(site, control),
  ...credentialRoutes(site, control),
]

function machineRoutes(site: Site<Machine>, control: PowerControl): readonly Route[] {
  const path = '/machines/:mac/power'
  const forget = async (event: H3Event, summaryOf: typeof forgetBmc): Promise<PowerNote> => {
    const mac = readMac(event)
    const summary = await summaryOf(control, mac)
    if (summary === null) throw refuse(404, `no power control is set up for ${mac}`)
    return { mac, summary }
  }
  return [
    {
      method: 'PUT',
      path,
      access: 'admin',
      takes: 'json',
      doc: {
        summary: 'Sets up power control of a machine',
        body: renderSchema(BmcUpsertSchema, 'input'),
        answers: { 200: renderSchema(PowerViewSchema, 'output') },
      },
      async handle(event, body) {
        const { mac } = site.findMachine(readMac(event))
        const { credential, ...bmc } = checked(BmcUpsertSchema, body)
        await saveBmc({ site, control, event, mac }, { bmc, credential })
        return json(showPower(control, mac))
      },
    },
    removalRoute(site, path, 'Removes power control of a machine', (event) =>
      forget(event, forgetBmc),
    ),
    removalRoute(
      site,
      `${path}/certificate`,
      'Forgets the certificate of its BMC; the next one is trusted',
      (event) => forget(event, forgetCertificate),
    ),
  ]
}

interface PowerEdit {
  readonly site: Site<Machine>
  readonly control: PowerControl
  readonly event: H3Event
  readonly mac: Mac
}

export async function saveBmc(
  { site, control, event, mac }: PowerEdit,
  change: PowerChange,
): Promise<void> {
  await control.book.save(new Map([[mac, change]]))
  control.forget(mac)
  const summary = `Power control of ${mac} was set to ${renderBmc(change.bmc)}`
  await recordPowerSetting(site, event, mac, summary)
}

/** Resolves to the event's text; null: none was set. */
export async function forgetBmc(control: PowerControl, mac: Mac): Promise<string | null> {
  if (!(await control.book.remove(mac))) return null
  control.forget(mac)
  return `Power control of ${mac} was removed`
}

export async function forgetCertificate({ book }: PowerControl, mac: Mac): Promise<string | null> {
  const entry = book.find(mac)
  if (entry === null) return null
  await book.learn(mac, { certificate: null }, queueOf(entry.bmc))
  return `The certificate of the BMC of ${mac} was forgotten`
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
        'Imports a list of BMCs as CSV: mac, way, address, user, password, firmware, outlet, system',
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
      await recordPowerSetting(
        site,
        event,
        null,
        `The BMCs of ${list.value.size} machines were imported`,
      )
      return json({ imported: list.value.size })
    },
  }
}

function credentialRoutes(site: Site<Machine>, { book }: PowerControl): readonly Route[] {
  const path = '/power/credentials'
  const ofLabel = `${path}/labels/:label`
  return [
    {
      method: 'GET',
      path,
      access: 'admin',
      doc: {
        summary: 'Shared BMC logins, for a label or for all machines',
        answers: { 200: renderSchema(USERS, 'output') },
      },
      handle: () => json(book.listUsers()),
    },
    credentialRoute(site, path, {
      summary: 'Sets the shared BMC login of all machines',
      body: CredentialSchema,
      async save(_event, credential) {
        await book.saveForAll(credential)
        return 'The credentials for all BMCs were set'
      },
    }),
    removalRoute(site, path, 'Removes the shared BMC login of all machines', async () => {
      await book.saveForAll(null)
      return { mac: null, summary: 'The credentials for all BMCs were removed' }
    }),
    credentialRoute(site, ofLabel, {
      summary: 'Sets the shared BMC login of a label, and the addresses of its BMCs',
      body: LABEL_BODY,
      async save(event, sent) {
        const label = checked(LabelSchema, nameLabel(event), 'query')
        const { user, password, addresses = [] } = { ...book.findForLabel(label), ...sent }
        if (user === undefined || password === undefined || addresses.length === 0) {
          throw refuse(422, `Give user, password and addresses. ${describeListing(label)}`)
        }
        await book.saveForLabel(label, { user, password, addresses })
        return `The credentials for BMCs with the label ${label} were set`
      },
    }),
    removalRoute(site, ofLabel, 'Removes the shared BMC login of a label', async (event) => {
      const label = nameLabel(event)
      if (book.findForLabel(label) === null) throw refuse(404, 'this label has no credentials')
      await book.saveForLabel(label, null)
      return { mac: null, summary: `The credentials for BMCs with the label ${label} were removed` }
    }),
  ]
}

/** `save` throws the refusal, and resolves to the event's text. */
const credentialRoute = <Body>(
  site: Site<Machine>,
  path: string,
  {
    summary,
    body,
    save,
  }: {
    readonly summary: string
    readonly body: z.ZodType<Body>
    save(event: H3Event, credential: Body): Promise<string>
  },
): Route => ({
  method: 'PUT',
  path,
  access: 'admin',
  takes: 'json',
  doc: {
    summary,
    body: renderSchema(body, 'input'),
    answers: { 204: null },
    isNeverMissing: true,
  },
  async handle(event, sent) {
    await recordPowerSetting(site, event, null, await save(event, checked(body, sent)))
    return nothing()
  },
})

/** The event's text, and its machine. */
interface PowerNote {
  readonly mac: string | null
  readonly summary: string
}

/** `remove` throws the refusal. */
const removalRoute = (
  site: Site<Machine>,
  path: string,
  summary: string,
  remove: (event: H3Event) => Promise<PowerNote>,
): Route => ({
  method: 'DELETE',
  path,
  access: 'admin',
  doc: { summary, answers: { 204: null } },
  async handle(event) {
    const removed = await remove(event)
    await recordPowerSetting(site, event, removed.mac, removed.summary)
    return nothing()
  },
})

const nameLabel = (event: H3Event) => getRouterParam(event, 'label', { decode: true }) ?? ''

/** Without credentials. */
export function recordPowerSetting(
  site: Site<Machine>,
  event: H3Event,
  mac: string | null,
  summary: string,
) {
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
    throw refuse(422, `the list is not UTF-8 text: ${renderError(thrown)}`)
  }
}
