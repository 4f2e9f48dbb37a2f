/** What the server keeps of its machines' power: how each is reached, and what opens it. */
import { z } from 'zod'
import type { Mac } from '../../../kit/net/rules/mac.ts'
import { MacSchema } from '../../../kit/net/rules/mac-schema.ts'
import {
  AddressesSchema,
  BmcSchema,
  CredentialSchema,
  LearnedSchema,
  NOTHING_LEARNED,
  queueOf,
  type Bmc,
  type Credential,
} from './bmc.ts'

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
