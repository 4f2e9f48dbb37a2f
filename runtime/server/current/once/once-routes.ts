/** What is booted once: its entries in the API, the orders, and the addresses below which a machine fetches it with its own answers. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { renderFirstBoot, subjectOf } from '#engine/first-boot/rules/seed.ts'
import {
  fillPlaceholders,
  hasSecrets,
  TemplateSchema,
  type Template,
} from '#engine/first-boot/rules/template.ts'
import type { Templates } from '#fleet/first-boot/templates.ts'
import type { Entries } from '#fleet/once/entries.ts'
import type { EntryFiles } from '#fleet/once/entry-files.ts'
import {
  BootEntrySchema,
  ENTRY_PARTS,
  EntryNameSchema,
  EntryRecordSchema,
  hasAnswers,
  MAX_ENTRIES,
  startOf,
  type BootEntry,
  type EntryPart,
  type NamedEntry,
} from '#fleet/once/rules/boot-entry.ts'
import {
  isOpen,
  isTicketOf,
  isWaiting,
  mayAnswer,
  type OnceOrder,
} from '#fleet/once/rules/once-order.ts'
import { fieldError } from '#kit/foundation/field-error.ts'
import { accept, refuse as refuseValue, type Result } from '#kit/foundation/result.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import { text, type Answer } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { act, bootAfterOrder, POWER } from '#server/routes/bulk.ts'
import { readSerial } from '#server/current/first-boot/template-routes.ts'
import { createResource } from '#server/routes/resource.ts'
import type { Site } from '#server/routes/site.ts'
import { rememberOnceUsed } from '#server/current/machines/rules/contact.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import {
  describeOnceAnswered,
  describeOnceUsed,
} from '#server/current/machines/rules/machine-events.ts'
import type { TokenPolicy } from '#server/current/machines/rules/token.ts'
import type { KnownEntry } from '#fleet/once/rules/boot-entry.ts'

interface OnceDependencies {
  readonly entries: Entries
  readonly entryFiles: EntryFiles
  readonly templates: Templates
  readonly bootKey: Pick<Secret, 'sign' | 'verify'>
  settings(): { readonly tokens: TokenPolicy }
}

/** From memory. */
export const createEntryFinder =
  ({ entries, entryFiles }: Pick<OnceDependencies, 'entries' | 'entryFiles'>) =>
  (name: string): KnownEntry | null => {
    const entry = entries.find(name)
    if (entry === null) return null
    return {
      entry,
      trouble: entryFiles.findTrouble(entry),
      program: entryFiles.programOf(startOf(entry)?.name ?? ''),
      shimKeys: entryFiles.vendorKeys(entry.processor),
    }
  }

const WireSchema = EntryRecordSchema.extend({
  name: EntryNameSchema,
  trouble: z.string().nullable().describe('Why it cannot be booted now; null: it can'),
})

const listOrdered = ({ machines }: Pick<Site<Machine>, 'machines'>, name: string) =>
  machines
    .peekAll()
    .flatMap(({ mac, once }) => (isWaiting(once) && once.entry === name ? [mac] : []))

export const countOrdered = (site: Pick<Site<Machine>, 'machines'>, name: string): number =>
  listOrdered(site, name).length

export const createEntryResource = (
  site: Site<Machine>,
  { entries, entryFiles }: Pick<OnceDependencies, 'entries' | 'entryFiles'>,
) =>
  createResource<NamedEntry, BootEntry>(site, {
    path: '/boot-entries',
    word: 'boot entry',
    rows: entries,
    most: MAX_ENTRIES,
    schemas: { name: EntryNameSchema, fields: BootEntrySchema, wire: WireSchema },
    summaries: {
      list: 'All boot entries, by name: what machines can be booted into once',
      one: 'One boot entry',
      save: 'Adds or replaces a boot entry; its files are in the boot folder and match their checksums',
      remove: 'Removes a boot entry that no machine is set to boot; its files stay',
    },
    scope: 'admin',
    reach: ['list', 'list'],
    toWire: (entry) => ({ ...entry, trouble: entryFiles.findTrouble(entry) }),
    tagOf: (entry) => etagOf(JSON.stringify(entry)),
    edit: (_, fields, { at }) => ({ ...fields, saved_at: at }),
    async check(entry) {
      await entryFiles.look([entry])
      const trouble = entryFiles.findTrouble(entry)
      if (trouble !== null) return fieldError([findPart(entry, trouble)], trouble)
      const before = entries.find(entry.name)
      const changed = before === null ? null : findChange(before, entry)
      const waiting = changed === null ? [] : listOrdered(site, entry.name)
      return changed === null || waiting.length === 0
        ? null
        : fieldError([changed], describeWaiting(entry.name, waiting))
    },
    findObstacle({ name }) {
      const count = countOrdered(site, name)
      return count === 0 ? null : `${count} machines are set to boot ${name} once`
    },
    describeStale: (name) =>
      `the boot entry ${name} was changed in the meantime, or exists already`,
    describe(before, after) {
      const done = after === null ? 'removed' : 'saved'
      const { name, ...entry } = after ?? before ?? { name: '' }
      const summary = `The boot entry ${name} was ${done}`
      const { answers: _, ...details } = { answers: '', ...entry }
      return { kind: `settings.boot_entry.${done}`, summary, details }
    },
  })

const MAX_NAMED = 3

/** Nobody boots another thing than was ordered. */
function describeWaiting(name: string, macs: readonly string[]): string {
  const more = macs.length > MAX_NAMED ? ` and ${macs.length - MAX_NAMED} more` : ''
  const named = macs.slice(0, MAX_NAMED).join(', ')
  return `machines are set to boot ${name} once: ${named}${more}. Cancel that first`
}

/** What it starts, and where; null: at most its note is another. */
const findChange = (before: BootEntry, after: BootEntry): keyof BootEntry | null =>
  BOOTED_FIELDS.find((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field])) ??
  null

const BOOTED_FIELDS = ['processor', 'firmware', ...ENTRY_PARTS, 'arguments', 'answers'] as const

/** Of which file the trouble speaks. */
const findPart = (entry: BootEntry, trouble: string): EntryPart =>
  ENTRY_PARTS.find((part) => entry[part] !== null && trouble.includes(` ${entry[part].name} `)) ??
  'kernel'

const OrderSchema = z.strictObject({ entry: EntryNameSchema, power: POWER.default(false) })

const NO_STORE = { 'cache-control': 'no-store' }

export const onceRoutes = (site: Site<Machine>, given: OnceDependencies): readonly Route[] => [
  ...createEntryResource(site, given).routes(),
  {
    method: 'POST',
    path: '/machines/:mac/once',
    access: 'flash',
    takes: 'json',
    doc: {
      summary: 'Boots something else at the next network boot, once; the order after it stays',
      body: renderSchema(OrderSchema, 'input'),
      answers: { 200: 'Machine' },
      refuses: [409],
    },
    async handle(event, body) {
      const { entry, power } = checked(OrderSchema, body)
      return await bootAfterOrder(site, event, { action: 'once', parameters: { entry }, power })
    },
  },
  {
    method: 'DELETE',
    path: '/machines/:mac/once',
    access: 'flash',
    doc: {
      summary: 'Cancels what was to be booted once',
      answers: { 200: 'Machine' },
      refuses: [409],
    },
    handle: (event) => act(site, event, 'cancel-once', {}),
  },
  {
    method: 'GET',
    path: '/pxe/:mac/once/:ticket/:name',
    access: 'open',
    doc: {
      summary: 'A file of what the machine boots once, or one of its own answers, for that boot',
      answers: { 200: { type: 'string', contentMediaType: 'application/octet-stream' } },
      refuses: [409, 416],
    },
    handle: (event) => send(site, given, event),
  },
]

/** The same words for a wrong address and for one that is over. */
const notThere = () => refuse(404, 'this address belongs to no boot of this machine, or it is over')

function send(site: Site<Machine>, given: OnceDependencies, event: H3Event): Promise<Answer> {
  const name = getRouterParam(event, 'name', { decode: true }) ?? ''
  const asked = findAsked(site, given, event)
  const part = ENTRY_PARTS.find((each) => each === name)
  return part === undefined
    ? sendAnswer(site, given, event, { ...asked, name })
    : sendPart(site, given, event, { ...asked, part })
}

/** Throws a 404 unless the address is of an open order of this machine. */
function findAsked(
  { machines, contact }: Site<Machine>,
  { entries, bootKey }: OnceDependencies,
  event: H3Event,
): Asked {
  const mac = readMac(event)
  const ticket = getRouterParam(event, 'ticket', { decode: true }) ?? ''
  const machine = machines.newest(mac)
  const once = machine?.once ?? null
  if (machine === null || once === null) throw notThere()
  const isOwn = isTicketOf(mac, once, ticket, bootKey.verify)
  const entry = isOwn && isOpen(once, contact(event).now) ? entries.find(once.entry) : null
  if (entry === null) throw notThere()
  return { machine, once, entry }
}

interface Asked {
  readonly machine: Machine
  readonly once: OnceOrder
  readonly entry: NamedEntry
}

async function sendPart(
  site: Site<Machine>,
  { entryFiles }: OnceDependencies,
  event: H3Event,
  { machine: { mac }, once, entry, part }: Asked & { readonly part: EntryPart },
): Promise<Answer> {
  const wanted = entry[part]
  if (wanted === null) throw notThere()
  const file = await entryFiles.open(wanted.name, wanted.sha256)
  if (file === null)
    throw refuse(409, `the file ${wanted.name} is not what the boot entry ${entry.name} says`)
  const { answer, bytes } = await answerFile(event, wanted.name, file)
  try {
    if (part !== 'initrd' && beginsBoot(event, answer)) await noteBoot(site, event, mac, once)
  } catch (thrown) {
    await file.close()
    throw thrown
  }
  site.metrics.count('flasher_boot_bytes_total', { name: 'once' }, bytes ?? 0)
  return answer
}

/** GRUB and UEFI ask HEAD first; who has the bytes already, or wants later ones, begins nothing. */
const beginsBoot = ({ req }: H3Event, { status, headers }: Answer): boolean =>
  req.method !== 'HEAD' &&
  (status === 200 || (headers['content-range'] ?? '').startsWith('bytes 0-'))

/** The order is used up on disk before the first byte is sent. */
async function noteBoot(site: Site<Machine>, event: H3Event, mac: Machine['mac'], once: OnceOrder) {
  const { now, ip } = site.contact(event)
  await site.fleet.update(mac, { actor: 'pxe-client', ip }, (before) => {
    if (before?.once?.ordered_at !== once.ordered_at) throw notThere()
    const after = rememberOnceUsed(before, now)
    return { machine: after, events: after === before ? [] : [describeOnceUsed(after, once)] }
  })
  site.machines.see(mac, { at: now, ip: ip ?? '' })
}

/** The same bytes each time: what would be others by now is refused. */
async function sendAnswer(
  site: Site<Machine>,
  given: OnceDependencies,
  event: H3Event,
  { machine, once, entry, name }: Asked & { readonly name: string },
): Promise<Answer> {
  const { now, ip } = site.contact(event)
  if (!hasAnswers(entry) || !mayAnswer(once, now)) throw notThere()
  const all = await renderAnswers(site, given, { machine, once, entry })
  if (!all.ok) throw refuse(409, all.refusal)
  const found = Object.hasOwn(all.value, name) ? (all.value[name] ?? null) : null
  if (found === null) throw notThere()
  if (event.req.method === 'HEAD') return text(found, NO_STORE)
  const mark = given.bootKey.sign(`once answers:${JSON.stringify(all.value)}`)
  await site.fleet.update(machine.mac, { actor: 'pxe-client', ip }, (before) => {
    const present = before?.once ?? null
    if (before === null || present?.ordered_at !== once.ordered_at) throw notThere()
    if (!mayAnswer(present, now)) throw notThere()
    if (present.answered_at === null) {
      const after = { ...before, once: { ...present, answered_at: now, answers_mark: mark } }
      return { machine: after, events: [describeOnceAnswered(after, present)] }
    }
    if (present.answers_mark !== mark) throw refuse(409, CHANGED)
    return { machine: before, events: [] }
  })
  return text(found, NO_STORE)
}

const CHANGED =
  'the template, the entry or the machine was changed since its first answer was fetched; boot it once again'

const NEEDS_TOKENS = 'the template has secrets, which need [pxe] tokens = require'

/** All four files of NoCloud are there, and may be empty; the others only where there is one. */
async function renderAnswers(
  site: Site<Machine>,
  given: OnceDependencies,
  { machine, once, entry }: Asked,
): Promise<Result<Readonly<Record<string, string | null>>, string>> {
  const template = findTemplate(given, machine)
  if (!template.ok) return template
  const subject = subjectOf(machine, await readSerial(site, machine.mac))
  const instance = nameInstance(given, machine, once)
  const rendered = renderFirstBoot(template.value, subject, { instance, secrets: 'filled' })
  if (!rendered.ok) return refuseValue(`the first-boot template: ${rendered.refusal}`)
  const own = fillPlaceholders(entry.answers, { ...subject, secrets: template.value.secrets })
  if (!own.ok) return refuseValue(`the answers of ${entry.name}: ${own.refusal}`)
  const { cloudInit, ignition } = rendered.value
  const seed = Object.entries(cloudInit ?? {}).map(([name, said]) => [name, said ?? ''])
  const file = own.value || null
  return accept({
    ...EMPTY_SEED,
    ...Object.fromEntries(seed),
    'config.ign': ignition,
    'ks.cfg': file,
    'preseed.cfg': file,
  })
}

const EMPTY_SEED = { 'user-data': '', 'meta-data': '', 'vendor-data': '', 'network-config': '' }
const NO_TEMPLATE = TemplateSchema.parse({})

function findTemplate(
  { templates, settings }: OnceDependencies,
  { first_boot: name }: Machine,
): Result<Template, string> {
  if (name === null) return accept(NO_TEMPLATE)
  const template = templates.find(name)?.template ?? null
  if (template === null) return refuseValue('the first-boot template of the machine was removed')
  return hasSecrets(template) && settings().tokens !== 'require'
    ? refuseValue(NEEDS_TOKENS)
    : accept(template)
}

/** The same each time, and of this boot alone: cloud-init runs once per instance. */
function nameInstance({ bootKey }: OnceDependencies, { mac }: Machine, once: OnceOrder): string {
  const signed = bootKey.sign(`once instance:${mac}:${once.ordered_at}`)
  return `flasher-${Buffer.from(signed, 'base64url').toString('hex', 0, 6)}`
}
