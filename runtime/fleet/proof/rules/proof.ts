/** Decides whether a system that was flashed has booted, from what is seen of its machine afterwards, and whose call it is. */
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { Proof, Run } from '#engine/inventory/rules/run.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'

/** SHA-256 of each SSH host key of a machine; empty: it has no SSH; null: nobody can tell. */
export type HostKeys = readonly string[] | null

/** What is seen of a machine after its flash. */
export type Sign =
  /** It asked for its boot script: firmware, and no system that runs. `isElsewhere`: it was not led to its disk. */
  | { readonly kind: 'contact'; readonly isElsewhere?: boolean }
  /** The new system called the one-time address that was made then (ISO 8601). */
  | { readonly kind: 'call'; readonly issued: string }
  /** Whether its network card answers at its address. */
  | { readonly kind: 'network'; readonly answers: boolean }
  | { readonly kind: 'ssh'; readonly keys: NonNullable<HostKeys> }
  /** Its next run began: a flash, or a capture. */
  | { readonly kind: 'flash' }
  /** The time to wait is over. */
  | { readonly kind: 'limit' }

/** So many boots from the network in a row are no system that runs: one is expected, one is a restart. */
const TOO_MANY_CONTACTS = 3
/** Boot loaders ask several times within one boot. */
const SAME_BOOT_MS = 5000

/** Creates what is known at the end of a flash. `limit` in seconds; `callMadeAt` as in `decideCall`, `keysBefore` as in `joinKeys`. */
export const createProof = (
  now: string,
  limit: number,
  callMadeAt: string | null,
  keysBefore: HostKeys = null,
): Proof => ({
  state: 'watching',
  how: null,
  since: now,
  until: Temporal.Instant.from(now).add({ seconds: limit }).toString({ fractionalSecondDigits: 3 }),
  seconds: null,
  contacts: 0,
  first_contact_at: null,
  last_contact_at: null,
  silent_at: null,
  network_at: null,
  call_made_at: callMadeAt,
  keys_before: keysBefore === null ? null : [...keysBefore],
  is_elsewhere: false,
  reason: null,
})

/**
 * Decides which one-time address the system of a run has: that of the newest configuration which its
 * machine fetched, unless it was made for the run before. Null: it has none.
 */
export function decideCall(takenAt: string | null, former: Run | null): string | null {
  if (takenAt === null || former === null) return takenAt
  const before = former.ended_at ?? former.updated_at
  return epochOf(takenAt) > epochOf(before) ? takenAt : null
}

/** What a sign makes of a proof; the same object when nothing. */
export function nextProof(proof: Proof, sign: Sign, now: string): Proof {
  if (sign.kind === 'call') return takeCall(proof, sign.issued, now)
  if (proof.state !== 'watching') return proof
  switch (sign.kind) {
    case 'contact':
      return takeContact(proof, sign.isElsewhere === true, now)
    case 'network':
      return takeAnswer(proof, sign.answers, now)
    case 'ssh':
      return takeKeys(proof, sign.keys, now)
    case 'flash':
      return { ...proof, state: 'not-seen', reason: 'The machine started another run.' }
    case 'limit':
      return endAtLimit(proof)
  }
}

/** Says whether a call may still change something: until then the watch is kept. */
export const isOpen = ({ state, until }: Proof, now: string): boolean =>
  state === 'watching' || (state === 'failed' && epochOf(now) < epochOf(until))

/** Contacts count for little against the word of the system itself. */
function takeCall(proof: Proof, issued: string, now: string): Proof {
  const isOwn = proof.call_made_at !== null && epochOf(proof.call_made_at) === epochOf(issued)
  if (!isOwn || !isOpen(proof, now)) return proof
  return { ...proof, state: 'booted', how: 'call', seconds: secondsSince(proof, now), reason: null }
}

function takeContact(before: Proof, isElsewhere: boolean, now: string): Proof {
  const proof =
    before.is_elsewhere === isElsewhere ? before : { ...before, is_elsewhere: isElsewhere }
  const { last_contact_at: last } = proof
  if (last !== null && epochOf(now) - epochOf(last) < SAME_BOOT_MS) return proof
  const contacts = proof.contacts + 1
  // What answered before is no system that runs.
  const seen = {
    ...proof,
    contacts,
    first_contact_at: proof.first_contact_at ?? now,
    last_contact_at: now,
    silent_at: null,
    network_at: null,
  }
  return contacts < TOO_MANY_CONTACTS ? seen : { ...seen, state: 'failed', reason: asked(contacts) }
}

/** The live system and firmware answer, too, so that counts only after a silence. */
function takeAnswer(proof: Proof, answers: boolean, now: string): Proof {
  const { silent_at, network_at } = proof
  if (!answers) return silent_at === null ? { ...proof, silent_at: now } : proof
  return silent_at !== null && network_at === null ? { ...proof, network_at: now } : proof
}

/** Whether the live system that wrote it is gone by now, and no other one was booted. */
export const mayProbe = ({ state, silent_at, contacts, is_elsewhere }: Proof): boolean =>
  state === 'watching' && !is_elsewhere && (silent_at !== null || contacts > 0)

/** What proves nothing is a sign like an answer of the network card: firmware has no SSH. */
function takeKeys(proof: Proof, keys: readonly string[], now: string): Proof {
  if (!mayProbe(proof) || keys.length === 0) return proof
  const { keys_before: before, network_at } = proof
  if (before === null || keys.some((key) => before.includes(key)))
    return network_at === null ? { ...proof, network_at: now } : proof
  return { ...proof, state: 'booted', how: 'ssh', seconds: secondsSince(proof, now), reason: null }
}

/** How long after its boot a system may take to start its SSH, milliseconds. */
const STARTS_MS = 120_000

export interface LastBoot {
  readonly isToDisk: boolean
  /** Milliseconds of a clock that nobody sets. */
  readonly at: number
}

/**
 * Whether what answers at a machine's address now is the system on its disk, up and running: only that
 * is a witness of what was there before a flash. Firmware and live systems are none.
 */
export const isOldSystem = (last: LastBoot | undefined, now: number): boolean =>
  last?.isToDisk === true && now - last.at >= STARTS_MS

/** Joins what was read before the flash and during it: nothing is compared unless both are known. */
export const joinKeys = (old: HostKeys, live: HostKeys): HostKeys =>
  old === null || live === null ? null : [...new Set([...old, ...live])]

function endAtLimit(proof: Proof): Proof {
  const { contacts, network_at: at } = proof
  if (at !== null)
    return { ...proof, state: 'seen', how: 'network', seconds: secondsSince(proof, at) }
  // The first contact is expected: the network comes first, then the disk.
  if (contacts > 1) return { ...proof, state: 'failed', reason: asked(contacts) }
  return { ...proof, state: 'not-seen', reason: contacts === 0 ? NOTHING : ONLY_CONTACT }
}

const asked = (contacts: number) =>
  `The machine booted from the network ${contacts} times instead of running the new system.`
const NOTHING = 'The machine was not seen again.'
const ONLY_CONTACT = 'The machine requested its boot script once and was not seen again.'

const secondsSince = ({ since }: Proof, now: string): number =>
  Math.max(0, epochOf(now) - epochOf(since)) / 1000

/** Whether a neighbour answers is bit 1 of its flags (`ATF_COM` of linux/if_arp.h). */
const ANSWERS = 0x2

/** Of `/proc/net/arp`: MAC addresses by IPv4 address; null for those that do not answer. */
export function parseNeighbours(table: string): ReadonlyMap<string, string | null> {
  const rows = table.split('\n').slice(1)
  return new Map(
    rows.flatMap((row) => {
      const [ip = '', , flags = '', hardware = ''] = row.trim().split(/\s+/)
      const mac = parseMac(hardware)
      if (ip === '') return []
      const answers = (Number.parseInt(flags, 16) & ANSWERS) !== 0
      return [[ip, answers && mac.ok ? mac.value : null] as const]
    }),
  )
}

/** Why a machine's network card counts as one that answers at its address; null: nobody can tell. */
export const decideAnswer = (
  { mac, last_seen_ip: ip }: Pick<MachineBase, 'mac' | 'last_seen_ip'>,
  neighbours: ReadonlyMap<string, string | null>,
): boolean | null => {
  const found = ip === null ? undefined : neighbours.get(ip)
  return found === undefined ? null : found === mac
}

/**
 * Lists the other machines that are known and may have made a call: by the hardware address of its
 * neighbour, or because one used the address after the flash.
 */
export function listOthers(
  {
    mac,
    ip,
    since,
  }: {
    readonly mac: string
    /** Where it came from; null: nobody knows. */
    readonly ip: string | null
    /** When the flash ended (ISO 8601). */
    readonly since: string
  },
  neighbours: ReadonlyMap<string, string | null>,
  machines: readonly Pick<MachineBase, 'mac' | 'last_seen_ip' | 'last_seen_at'>[],
): readonly string[] {
  if (ip === null) return []
  const hardware = neighbours.get(ip) ?? null
  if (hardware === mac) return []
  const sharing = machines.filter((each) => each.last_seen_ip === ip)
  // They all have its address behind one router or proxy.
  if (sharing.some((each) => each.mac === mac)) return []
  const isLater = ({ last_seen_at: at }: (typeof machines)[number]) =>
    at !== null && epochOf(at) >= epochOf(since)
  return [...machines.filter((each) => each.mac === hardware), ...sharing.filter(isLater)].map(
    (each) => each.mac,
  )
}

/** Whether all of these are network cards of the machine whose hardware this is (JSON): a machine with two cards may have two records. */
export const areOwnCards = (macs: readonly string[], hardware: string | null): boolean => {
  const text = hardware?.toLowerCase() ?? ''
  return macs.every((mac) => text.includes(mac))
}

const SHAPE = /^([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36

/** Renders the token of a first-boot configuration that was fetched with the seed token of `issued` (ISO 8601). */
export function renderProofToken(mac: Mac, issued: string, sign: (text: string) => string): string {
  const claims = Temporal.Instant.from(issued).epochMilliseconds.toString(RADIX)
  return `${claims}.${sign(textOf(mac, claims))}`
}

/**
 * Returns the time of the seed token (ISO 8601, milliseconds) that a token belongs to; null: it is not
 * of this server and this machine. `verify` compares in constant time.
 */
export function parseProofToken(
  text: string,
  mac: Mac,
  verify: (text: string, signature: string) => boolean,
): string | null {
  const [, claims = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '' || !verify(textOf(mac, claims), signature)) return null
  const at = Temporal.Instant.fromEpochMilliseconds(Number.parseInt(claims, RADIX))
  return at.toString({ fractionalSecondDigits: 3 })
}

const textOf = (mac: Mac, claims: string) => `booted:${mac}:${claims}`
