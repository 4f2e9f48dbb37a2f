/** `/first-boot`: the first-boot templates, and what they are for one machine. */
import type { H3Event } from 'h3'
import {
  decideIssue,
  DocumentSchema,
  findTemplateObstacle,
  type FirstBoot,
  NamedTemplateSchema,
  OfferSchema,
  parseSeedToken,
  renderDocument,
  renderFirstBoot,
  renderSeedToken,
  SEED_TOKEN_REFUSALS,
  subjectOf,
  TicketSchema,
} from '#engine/first-boot/rules/seed.ts'
import {
  hideSecrets,
  keepSecrets,
  MAX_TEMPLATES,
  TemplateNameSchema,
  TemplateSchema,
  type NamedTemplate,
  type Template,
  hasSecrets,
} from '#engine/first-boot/rules/template.ts'
import type { Result } from '#kit/foundation/result.ts'
import { parseHardware } from '#engine/inventory/rules/inventory.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { type Templates, makeInstance } from '#fleet/first-boot/templates.ts'
import type { Site } from '#server/routes/site.ts'
import { json, type Answer } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { createResource } from '#server/routes/resource.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { MODES } from '#server/current/machines/rules/boot-mode.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import { describeFirstBootFetched } from '#server/current/machines/rules/machine-events.ts'
import type { TokenPolicy } from '#server/current/machines/rules/token.ts'
import { addProofCall } from '#engine/first-boot/rules/proof-call.ts'
import { renderProofToken } from '#fleet/proof/rules/proof.ts'

export const createTemplateResource = (site: Site<Machine>, templates: Templates) =>
  createResource<NamedTemplate, Template>(site, {
    path: '/first-boot',
    word: 'first-boot template',
    rows: templates,
    most: MAX_TEMPLATES,
    schemas: { name: TemplateNameSchema, fields: TemplateSchema, wire: NamedTemplateSchema },
    summaries: {
      list: 'All first-boot templates, by name; secrets are dots',
      one: 'One first-boot template; secrets are dots',
      save: 'Creates or replaces a first-boot template; a secret of dots keeps its value',
      remove: 'Removes a first-boot template that no machine has',
    },
    scope: 'admin',
    reach: ['list', 'list'],
    toWire: ({ name, template, updated_at }) => ({
      name,
      ...hideSecrets(template),
      updated_at,
      machines: countMachines(site, name),
    }),
    edit: (before, { name, ...template }, { at }) => ({
      name,
      template: keepSecrets(template, before?.template ?? null),
      updated_at: at,
    }),
    findObstacle({ name }) {
      const count = countMachines(site, name)
      return count === 0 ? null : `${count} machines have the template ${name}`
    },
    describeStale: (name) =>
      `the first-boot template ${name} is there, or is gone, and was not saved`,
    /** Without what the template says. */
    describe(before, after) {
      const done = after === null ? 'removed' : 'saved'
      const name = (after ?? before)?.name
      const summary = `The first-boot template ${name} was ${done}`
      return { kind: `settings.first_boot.${done}`, summary, details: null }
    },
  })

export const countMachines = ({ machines }: Site<Machine>, name: string): number =>
  machines.peekAll().filter(({ first_boot }) => first_boot === name).length

/** With dots for secrets. The refusal: why it cannot be used; null: no template, or removed. */
export async function previewFirstBoot(
  site: Site<Machine>,
  templates: Templates,
  machine: Machine,
): Promise<Result<FirstBoot, string> | null> {
  const kept = machine.first_boot === null ? null : templates.find(machine.first_boot)
  if (kept === null) return null
  const subject = subjectOf(machine, await readSerial(site, machine.mac))
  return renderFirstBoot(kept.template, subject, { instance: 'flasher-…', secrets: 'hidden' })
}

export async function readSerial({ machines }: Site<Machine>, mac: Mac): Promise<string | null> {
  const hardware = await machines.findHardware(mac)
  return hardware === null ? null : (parseHardware(hardware.json)?.serial ?? null)
}

/** `/pxe/{mac}/first-boot`: offers a live system the first-boot configuration of its machine, and hands it out once. */
interface ProofCalls {
  readonly enabled: boolean
  /** Where new systems reach the server; empty: where the machine did. */
  readonly url: string
}

interface SeedDependencies {
  readonly templates: Templates
  /** Signs the one-time tokens. */
  readonly bootKey: Pick<Secret, 'sign' | 'verify'>
  settings(): { readonly tokens: TokenPolicy }
  /** `[proof]`; absent: nobody waits for first boots. */
  proof?(): ProofCalls
}

const NO_STORE = { 'cache-control': 'no-store' }

const NEEDS_TOKENS = 'the template has secrets, which need [pxe] tokens = require'

export const firstBootRoutes = (site: Site<Machine>, given: SeedDependencies): readonly Route[] => [
  ...createTemplateResource(site, given.templates).routes(),
  {
    method: 'GET',
    path: '/machines/:mac/first-boot',
    access: 'read',
    doc: {
      summary: 'What its first-boot template is for this machine; secrets are dots',
      answers: { 200: renderSchema(DocumentSchema, 'output') },
      refuses: [409],
    },
    async handle(event) {
      const machine = site.findMachine(readMac(event))
      const rendered = await previewFirstBoot(site, given.templates, machine)
      if (rendered === null) throw refuse(404, `${machine.mac} has no first-boot template`)
      if (!rendered.ok) throw refuse(409, rendered.refusal)
      return json(renderDocument(rendered.value))
    },
  },
  {
    method: 'GET',
    path: '/pxe/:mac/first-boot',
    access: 'open',
    doc: {
      summary: 'Name and token of the first-boot template, for flashing by hand',
      answers: { 200: renderSchema(OfferSchema, 'output') },
      refuses: [401, 409],
    },
    handle: (event) => offer(site, given, event),
  },
  {
    method: 'POST',
    path: '/pxe/:mac/first-boot',
    access: 'open',
    takes: 'json',
    doc: {
      summary: 'The first-boot configuration that the plan names, once',
      body: renderSchema(TicketSchema, 'input'),
      answers: { 200: renderSchema(DocumentSchema, 'output') },
      refuses: [401, 409],
    },
    handle: (event, body) => fetchOnce(site, given, event, body),
  },
]

/** Throws what `admitMachine` throws, and a 404 for an unknown machine. */
async function admit(site: Site<Machine>, event: H3Event) {
  const mac = readMac(event)
  const contact = site.contact(event)
  await site.admitMachine(mac, 'plan', contact)
  return { mac, contact, machine: site.findMachine(mac) }
}

/** For a flash that a person began at the machine: no plan names it, and nothing is recorded. */
async function offer(
  site: Site<Machine>,
  { templates, bootKey, settings }: SeedDependencies,
  event: H3Event,
): Promise<Answer> {
  const { mac, contact, machine } = await admit(site, event)
  const { first_boot: template, first_boot_taken_at: takenAt } = machine
  if (template === null) throw refuse(404, `${mac} has no first-boot template`)
  if (MODES[machine.boot_mode].does === 'boot-disk') throw refuse(409, NO_NETWORK_BOOT)
  const obstacle = findTemplateObstacle(machine, {
    findTemplate: (name) => templates.find(name)?.template ?? null,
    tokens: settings().tokens,
    features: { firstBoot: true },
  })
  if (obstacle !== null) throw refuse(409, obstacle)
  const token = renderSeedToken(mac, decideIssue(takenAt, contact.now), bootKey.sign)
  return json({ template, token }, 200, NO_STORE)
}

const NO_NETWORK_BOOT = 'The machine is set to boot its own disk.'

/** The token is used up in the transaction that stores it. */
async function fetchOnce(
  site: Site<Machine>,
  given: SeedDependencies,
  event: H3Event,
  body: unknown,
): Promise<Answer> {
  const { templates, bootKey, settings } = given
  const { mac, contact, machine } = await admit(site, event)
  const { token } = checked(TicketSchema, body)
  const kept = machine.first_boot === null ? null : templates.find(machine.first_boot)
  if (kept === null) throw refuse(409, `${mac} has no first-boot template`)
  if (hasSecrets(kept.template) && settings().tokens !== 'require') throw refuse(409, NEEDS_TOKENS)
  const subject = subjectOf(machine, await readSerial(site, mac))
  const rendered = renderFirstBoot(kept.template, subject, {
    instance: makeInstance(),
    secrets: 'filled',
  })
  const who = { actor: 'pxe-client', ip: contact.ip } as const
  const { now } = contact
  let refusal: string | null = null
  let madeAt: string | null = null
  await site.fleet.update(mac, who, (before) => {
    if (before === null) return null
    const shown = { mac, now, takenAt: before.first_boot_taken_at }
    const issued = parseSeedToken(token, shown, bootKey.verify)
    refusal = issued.ok ? null : SEED_TOKEN_REFUSALS[issued.refusal]
    if (!issued.ok || !rendered.ok) return { machine: before, events: [] }
    const taken = { ...before, first_boot_taken_at: issued.value }
    madeAt = issued.value
    return { machine: taken, events: [describeFirstBootFetched(taken)] }
  })
  if (refusal !== null) throw refuse(401, refusal)
  if (!rendered.ok) throw refuse(409, `the template ${kept.name}: ${rendered.refusal}`)
  const url = nameCall(given, mac, contact.baseUrl, madeAt)
  const document = url === null ? rendered.value : addProofCall(rendered.value, url)
  return json(renderDocument(document), 200, NO_STORE)
}

/** Null: nobody waits for the boot. */
function nameCall(
  { proof, bootKey }: SeedDependencies,
  mac: Mac,
  reached: string,
  madeAt: string | null,
): string | null {
  const calls = proof?.()
  if (madeAt === null || calls?.enabled !== true) return null
  const token = renderProofToken(mac, madeAt, bootKey.sign)
  return `${calls.url || reached}/pxe/${mac}/booted/${token}`
}
