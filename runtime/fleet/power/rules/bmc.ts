/** How a machine's power is reached: its BMC or other way, and the book of all of them with their credentials. */
import { z } from 'zod'
import { MacSchema, type Mac, findMac } from '#kit/net/rules/mac.ts'
import { FIRMWARES } from './power.ts'
import {
  unguardCell,
  parseCsv,
  type CsvLimits,
  type CsvRefusal,
  type CsvRow,
} from '#kit/foundation/csv.ts'
import { listFieldErrors, renderFieldErrors } from '#kit/foundation/field-error.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

const MAX_SECRET = 255

export const CredentialSchema = z.strictObject({
  user: z
    .string()
    .max(MAX_SECRET)
    .regex(/^\P{Cc}*$/u, 'no control characters'),
  password: z
    .string()
    .max(MAX_SECRET)
    .regex(/^\P{Cc}*$/u, 'no control characters'),
})
export type Credential = z.infer<typeof CredentialSchema>

export const AddressesSchema = z
  .array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'addresses and CIDR ranges'))
  .max(100)
  .describe('The login is sent only to BMCs with these addresses or in these CIDR ranges')

/** A host name, IPv4, or IPv6 in brackets, maybe with a port. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:]{2,45}\])(?::\d{1,5})?$/i

const WANTED = 'a host name or address, perhaps with a port'
const host = z
  .string()
  .max(300)
  .regex(HOST, WANTED)
  // Refuses 1.2.3.999 and port 99999.
  .refine((address) => URL.canParse(`http://${address}`), WANTED)

const isPlainUrl = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  return url.protocol === 'http:' || url.protocol === 'https:'
}

/** `{mac}` is not for the host, where colons are invalid. */
const isTemplate = (text: string): boolean => !/[{}]/.test(URL.parse(text)?.hostname ?? '')

const httpUrl = z
  .string()
  .max(2000)
  .refine(isPlainUrl, 'an http or https address without user and password')

const hookUrl = httpUrl.refine(isTemplate, 'no {mac} in the host').nullable().default(null)

const common = {
  firmware: z.enum(FIRMWARES).default('uefi').describe('How the machine boots'),
  outlet: z
    .string()
    .trim()
    .min(1)
    .max(100)
    .regex(/^\P{Cc}*$/u, 'no control characters')
    .nullable()
    .default(null)
    .describe(
      'A name for the outlet that feeds it; machines that name the same one lose power together',
    ),
}

const RedfishSchema = z.strictObject({
  way: z.literal('redfish'),
  address: z
    .union([host, httpUrl])
    .describe('Host name or address, perhaps with a port; https unless it begins with http://'),
  /** For a BMC with several; null: its only one. */
  system: z.string().max(200).nullable().default(null).describe('The system, if it has several'),
  /** `https` if the firmware knows the authority. */
  http_boot: httpUrl
    .nullable()
    .default(null)
    .describe('What UEFI fetches over HTTP to boot from the network, without DHCP; null: PXE'),
  ...common,
})

const IpmiSchema = z.strictObject({
  way: z.literal('ipmi'),
  address: host.describe('Host name or address, perhaps with a port (623)'),
  ...common,
})

const WakeSchema = z.strictObject({
  way: z.literal('wake-on-lan'),
  address: host.describe('The broadcast address of its network, perhaps with a port (9)'),
  ...common,
})

const HookSchema = z.strictObject({
  way: z.literal('hook'),
  /** `{mac}` stands for the machine's MAC in each. */
  on: hookUrl,
  off: hookUrl,
  state: hookUrl.describe('Answers on or off, as text or in JSON'),
  network: hookUrl.describe('Sets the network as next boot device'),
  method: z.enum(['GET', 'POST']).default('POST').describe('Of on, off and network'),
  ...common,
})

export const BmcSchema = z.discriminatedUnion('way', [
  RedfishSchema,
  IpmiSchema,
  WakeSchema,
  HookSchema,
])
export type Bmc = z.infer<typeof BmcSchema>

const optional = CredentialSchema.nullable()
  .optional()
  .describe('Omitted: unchanged while the address is; null: the shared login, if any')

export const BmcUpsertSchema = z.discriminatedUnion('way', [
  RedfishSchema.extend({ credential: optional }),
  IpmiSchema.extend({ credential: optional }),
  WakeSchema.extend({ credential: optional }),
  HookSchema.extend({ credential: optional }),
])
export type BmcOf<Way extends Bmc['way']> = Extract<Bmc, { readonly way: Way }>

/** Kept in place of a pinned certificate. */
export const BY_AUTHORITY = 'authority'

const LearnedSchema = z.strictObject({
  /** SHA-256 in hexadecimal, or `authority`: then only valid ones are accepted. Null: none seen. */
  certificate: z
    .string()
    .regex(/^(?:[0-9a-f]{64}|authority)$/)
    .nullable()
    .default(null),
  suite: z.int().min(0).max(255).nullable().default(null),
})
export type LearnedBmc = z.infer<typeof LearnedSchema>

export const NOTHING_LEARNED: LearnedBmc = { certificate: null, suite: null }

/** One queue for all spellings of an address; a host name and its address have two. */
export function queueOf(bmc: Bmc): string {
  switch (bmc.way) {
    case 'redfish':
      return `redfish ${nameUrl(bmc.address)}`
    case 'ipmi':
      return `ipmi ${nameHost(bmc.address, 623)}`
    case 'wake-on-lan':
      return `wake-on-lan ${nameHost(bmc.address, 9)}`
    case 'hook':
      return `hook ${nameHook(bmc)}`
  }
}

const nameHook = ({ on, off, state, network }: BmcOf<'hook'>): string =>
  URL.parse(on ?? off ?? state ?? network ?? '')?.host ?? ''

function nameUrl(address: string): string {
  const isHttp = /^http:/i.test(address)
  return `${isHttp ? 'http' : 'https'} ${nameHost(address.replace(/^https?:\/\//i, ''), isHttp ? 80 : 443)}`
}

/** `usual`: the port if none is given. The URL parser knows all spellings of an address. */
function nameHost(address: string, usual: number): string {
  // With `ftp://` the parser drops port 21 alone, which is restored below.
  const url = URL.parse(`ftp://${address}`)
  if (url === null) return address.toLowerCase()
  const port = url.port === '' && !/:21(?:\/|$)/.test(address) ? usual : url.port || 21
  return `${url.hostname.replace(/\.$/, '')}:${port}`
}

export const renderBmc = (bmc: Bmc): string =>
  bmc.way === 'hook' ? queueOf(bmc) : `${bmc.way} ${bmc.address}`

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** For texts that match `HOST`; removes the brackets of IPv6. */
export function splitHost(address: string, usual: number): HostPort {
  const [, bracketed, plain = '', port] =
    /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(address) ?? []
  return { host: bracketed ?? plain, port: port === undefined ? usual : Number(port) }
}

const EntrySchema = z.strictObject({
  bmc: BmcSchema,
  /** Null: that of a label or of all machines. */
  credential: CredentialSchema.nullable(),
  learned: LearnedSchema,
})
export type PowerEntry = z.infer<typeof EntrySchema>

const LabelCredentialSchema = CredentialSchema.extend({
  /** Where it may be sent. */
  addresses: AddressesSchema,
})
export type LabelCredential = z.infer<typeof LabelCredentialSchema>

/** `<state_dir>/power.json`. */
export const PowerBookSchema = z.strictObject({
  version: z.literal(1),
  machines: z.record(MacSchema, EntrySchema),
  labels: z.record(z.string(), LabelCredentialSchema),
  all: CredentialSchema.nullable(),
})
export type PowerBookContent = z.infer<typeof PowerBookSchema>

export const EMPTY_BOOK: PowerBookContent = { version: 1, machines: {}, labels: {}, all: null }

/** `undefined`: the credential stays, unless the entry leads elsewhere now. */
export interface PowerChange {
  readonly bmc: Bmc
  readonly credential: Credential | null | undefined
}

/** A password for one address is never sent to another, nor is learned data carried over. */
export function changeEntry(
  before: PowerEntry | null,
  { bmc, credential }: PowerChange,
): PowerEntry {
  const isSame =
    before !== null && queueOf(before.bmc) === queueOf(bmc) && isSameHook(before.bmc, bmc)
  const kept = isSame ? before.credential : null
  return {
    bmc,
    credential: credential === undefined ? kept : credential,
    learned: isSame ? before.learned : NOTHING_LEARNED,
  }
}

/** All URLs' hosts count. */
function isSameHook(before: Bmc, after: Bmc): boolean {
  if (before.way !== 'hook' || after.way !== 'hook') return true
  const hostsOf = ({ on, off, state, network }: typeof before) =>
    [on, off, state, network].flatMap((url) => (url === null ? [] : [new URL(url).origin]))
  const known = hostsOf(before)
  return hostsOf(after).every((origin) => known.includes(origin))
}

type CredentialOrigin = 'machine' | 'label' | 'all'

export interface FoundCredential {
  readonly credential: Credential
  readonly from: CredentialOrigin
  readonly label: string | null
  /** Where it may be sent; null: to any configured BMC. */
  readonly addresses: readonly string[] | null
}

/** The machine's own, else its first label's, else that of all machines. */
export function findCredential(
  { labels: byLabel, all }: PowerBookContent,
  entry: PowerEntry,
  labels: readonly string[],
): FoundCredential | null {
  if (entry.credential !== null) {
    return { credential: entry.credential, from: 'machine', ...ANYWHERE }
  }
  for (const label of labels.toSorted()) {
    const found = Object.hasOwn(byLabel, label) ? byLabel[label] : undefined
    if (found === undefined) continue
    const { addresses, ...credential } = found
    return { credential, from: 'label', label, addresses }
  }
  return all === null ? null : { credential: all, from: 'all', ...ANYWHERE }
}

const ANYWHERE = { label: null, addresses: null } as const

export function listSharing({ machines }: PowerBookContent, mac: Mac): readonly string[] {
  const outlet = machines[mac]?.bmc.outlet ?? null
  if (outlet === null) return []
  return Object.entries(machines)
    .filter(([other, { bmc }]) => other !== mac && bmc.outlet === outlet)
    .map(([other]) => other)
    .toSorted()
}

// A list of BMCs as CSV: one line for each machine, the columns named in the first one.

export const MAX_CSV_BYTES = 4 * 2 ** 20
const LIMITS: CsvLimits = { rows: 20_001, columns: 100, characters: 10_000 }
const MAX_MISTAKES = 20

const COLUMNS = ['mac', 'way', 'address', 'user', 'password', 'firmware', 'outlet', 'system']

/** The refusal lists mistakes by line; then nothing is taken. */
export function parseBmcCsv(
  text: string,
): Result<ReadonlyMap<Mac, PowerChange>, readonly string[]> {
  const parsed = parseCsv(text, LIMITS)
  if (!parsed.ok) return refuse([`Line ${parsed.refusal.line}: ${OBSTACLES[parsed.refusal.why]}`])
  const { columns, rows } = parsed.value
  const names = columns.map((name) => name.trim().toLowerCase())
  return isHead(names) ? parseRows(names, rows) : refuse([BAD_HEAD])
}

const OBSTACLES: Readonly<Record<CsvRefusal['why'], string>> = {
  nul: 'bytes that are not text',
  'open-quote': 'a quote is not closed',
  'after-quote': 'there is text after the closing quote of a cell',
  rows: `the list has more than ${LIMITS.rows - 1} machines`,
  columns: `it has more than ${LIMITS.columns} columns`,
  characters: `a cell has more than ${LIMITS.characters} characters`,
}

const BAD_HEAD = `The first line must name columns of ${COLUMNS.join(', ')}, each once, mac and way among them.`

const isHead = (names: readonly string[]): boolean =>
  names.every((name, at) => COLUMNS.includes(name) && names.indexOf(name) === at) &&
  names.includes('mac') &&
  names.includes('way')

function parseRows(
  names: readonly string[],
  rows: readonly CsvRow[],
): Result<ReadonlyMap<Mac, PowerChange>, readonly string[]> {
  const changes = new Map<Mac, PowerChange>()
  const mistakes: string[] = []
  for (const { line, ...row } of rows) {
    const parsed = parseRow(names, row)
    if (!parsed.ok) mistakes.push(`Line ${line}: ${parsed.refusal}`)
    else if (changes.has(parsed.value.mac)) mistakes.push(`Line ${line}: this MAC is listed twice`)
    else changes.set(parsed.value.mac, parsed.value.change)
    if (mistakes.length >= MAX_MISTAKES) break
  }
  return mistakes.length === 0 ? accept(changes) : refuse(mistakes)
}

function parseRow(
  names: readonly string[],
  { cells: row, fits }: Omit<CsvRow, 'line'>,
): Result<{ readonly mac: Mac; readonly change: PowerChange }, string> {
  if (!fits) {
    return refuse(`it has ${row.length} cells, the first line names ${names.length} columns`)
  }
  const cells = Object.fromEntries(
    names.map((name, at) => [name, unguardCell(row[at] ?? '').trim()]),
  )
  const { mac: text = '', user = '', password: _, ...fields } = cells
  const mac = findMac(text)
  if (mac === null) return refuse('not a MAC address')
  const bmc = parseBmc(fields)
  if (!bmc.ok) return bmc
  // A password may begin or end with a blank.
  const password = row[names.indexOf('password')] ?? ''
  const credential = CredentialSchema.safeParse({ user, password })
  if (!credential.success) return refuse(renderFieldErrors(listFieldErrors(credential.error)))
  const isGiven = user !== '' || password !== ''
  const change = { bmc: bmc.value, credential: isGiven ? credential.data : undefined }
  return accept({ mac, change })
}

function parseBmc(fields: Readonly<Record<string, string>>): Result<Bmc, string> {
  if (fields['way'] === 'hook')
    return refuse('a hook cannot be set here; set it on the page of the machine')
  const filled = Object.entries(fields).filter(([, cell]) => cell !== '')
  const bmc = BmcSchema.safeParse(Object.fromEntries(filled))
  return bmc.success ? accept(bmc.data) : refuse(renderFieldErrors(listFieldErrors(bmc.error)))
}
