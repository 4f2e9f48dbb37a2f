/** Decides whether a system that was flashed has booted, from what is seen of its machine afterwards. */
import type { Proof, Run } from '../../../engine/inventory/rules/run.ts'
import { epochOf } from '../../../kit/foundation/instants.ts'

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
      return { ...proof, state: 'not-seen', reason: 'The machine began another run.' }
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

/** The last network boot of a machine. */
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
const NOTHING = 'Nothing was seen of the machine.'
const ONLY_CONTACT =
  'The machine asked for its boot script once, and nothing was seen of it afterwards.'

const secondsSince = ({ since }: Proof, now: string): number =>
  Math.max(0, epochOf(now) - epochOf(since)) / 1000
