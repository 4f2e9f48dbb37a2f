/** How a machine's power is reached: its BMC or other way, and the book of all of them with their credentials. */
import { z } from 'zod'
import { MacSchema } from '../../../kit/net/rules/mac-schema.ts'
import type { Mac } from '../../../kit/net/rules/mac.ts'
import { FIRMWARES } from './power.ts'

/** The longest user name and password that a BMC of any kind is given. */
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

/** Addresses and CIDR ranges, as in `[power] networks`. */
export const AddressesSchema = z
  .array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], 'addresses and CIDR ranges'))
  .max(100)
  .describe('Addresses and CIDR ranges of the BMCs to which it is sent, and to no other')

/** A host name, an IPv4 address or an IPv6 address in brackets, perhaps with a port. */
const HOST = /^(?:[a-z0-9](?:[a-z0-9.-]{0,252}[a-z0-9])?|\[[0-9a-f:]{2,45}\])(?::\d{1,5})?$/i

const WANTED = 'a host name or address, perhaps with a port'
const host = z
  .string()
  .max(300)
  .regex(HOST, WANTED)
  // 1.2.3.999 and the port 99999 are none.
  .refine((address) => URL.canParse(`http://${address}`), WANTED)

const isPlainUrl = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return false
  return url.protocol === 'http:' || url.protocol === 'https:'
}

/** What stands for the MAC may be anywhere but in the host, which a MAC's colons cannot be in. */
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
  /** Which one, where the BMC has several; null: its only one. */
  system: z.string().max(200).nullable().default(null).describe('The system, if it has several'),
  /** `https` too, where its firmware knows the authority. */
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

/** How a machine's power is reached, without what opens it. */
export const BmcSchema = z.discriminatedUnion('way', [
  RedfishSchema,
  IpmiSchema,
  WakeSchema,
  HookSchema,
])
export type Bmc = z.infer<typeof BmcSchema>

const optional = CredentialSchema.nullable()
  .optional()
  .describe('Left out: it stays while the address does; null: that of a label or of all machines')

/** The body of `PUT /machines/{mac}/power`. */
export const BmcUpsertSchema = z.discriminatedUnion('way', [
  RedfishSchema.extend({ credential: optional }),
  IpmiSchema.extend({ credential: optional }),
  WakeSchema.extend({ credential: optional }),
  HookSchema.extend({ credential: optional }),
])
export type BmcOf<Way extends Bmc['way']> = Extract<Bmc, { readonly way: Way }>

/** It is kept instead of a pinned certificate. */
export const BY_AUTHORITY = 'authority'

/** What was learned of a BMC while it was used. */
const LearnedSchema = z.strictObject({
  /**
   * SHA-256 of its certificate, hexadecimal, or that an authority vouches for it: then another one that
   * nobody vouches for is refused. Null: none was seen.
   */
  certificate: z
    .string()
    .regex(/^(?:[0-9a-f]{64}|authority)$/)
    .nullable()
    .default(null),
  /** The IPMI cipher suite that worked. */
  suite: z.int().min(0).max(255).nullable().default(null),
})
export type LearnedBmc = z.infer<typeof LearnedSchema>

export const NOTHING_LEARNED: LearnedBmc = { certificate: null, suite: null }

/**
 * Names what a BMC's queue is for: machines that share it wait for each other. An address has one name,
 * however it is spelled; a host name and its address are two.
 */
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

/** `usual`: the port where it names none. The URL parser knows all spellings of an address. */
function nameHost(address: string, usual: number): string {
  // No scheme has this port as its own, so none is left out.
  const url = URL.parse(`ftp://${address}`)
  if (url === null) return address.toLowerCase()
  const port = url.port === '' && !/:21(?:\/|$)/.test(address) ? usual : url.port || 21
  return `${url.hostname.replace(/\.$/, '')}:${port}`
}

/** Says where it is, for lists. */
export const renderBmc = (bmc: Bmc): string =>
  bmc.way === 'hook' ? queueOf(bmc) : `${bmc.way} ${bmc.address}`

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** Splits what `HOST` accepts; brackets of IPv6 addresses are taken off. */
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
  /** What it may be sent to; earlier releases listed nothing. */
  addresses: AddressesSchema.default([]),
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

/**
 * Makes the entry that a change leaves. A password that was given for one address is never sent to
 * another, and what was learned of one BMC says nothing of another.
 */
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

/** The hosts of all of its URLs count. */
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
  /** The label, where it is that of one. */
  readonly label: string | null
  /** The addresses and ranges to which it may be sent; null: to any BMC that was set. */
  readonly addresses: readonly string[] | null
}

/** Finds what opens a machine's BMC: its own credential, then that of its first label, then that of all. */
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

/** Lists the other machines that lose power together with this one. */
export function listSharing({ machines }: PowerBookContent, mac: Mac): readonly string[] {
  const outlet = machines[mac]?.bmc.outlet ?? null
  if (outlet === null) return []
  return Object.entries(machines)
    .filter(([other, { bmc }]) => other !== mac && bmc.outlet === outlet)
    .map(([other]) => other)
    .toSorted()
}
