/** What a machine's firmware starts, as its live system reports it and the server keeps it. */

import { printable } from '#kit/foundation/printable.ts'

/** As in the names of the programs that firmware starts. */
export const PROCESSORS = ['x64', 'ia32', 'aa64', 'arm', 'riscv64'] as const
export type EfiProcessor = (typeof PROCESSORS)[number]

/** Beyond these, a digest says no more: some 400 are revoked, and one in four thousand million looks like one of them. */
export const DIGEST_DIGITS = 8
export const MAX_DIGESTS = 4096
export const MAX_CERTIFICATES = 32

interface KnownCertificate {
  /** SHA-256 of its DER. */
  readonly fingerprint: string
  readonly name: string
  /** As in `issuer` of a chain. */
  readonly subject: string
}

export interface KeyList {
  readonly certificates: readonly KnownCertificate[]
  /** The first digits of SHA-256, one after the other: of programs, and of certificates' contents. */
  readonly digests: string
  /** Entries of other kinds, or beyond the limits. */
  readonly others: number
}

export interface FirmwareFacts {
  readonly kind: 'bios' | 'uefi'
  /** Of the programs that the firmware starts; null: unknown. */
  readonly processor: EfiProcessor | null
  /** Null: unknown. */
  readonly secure_boot: boolean | null
  /** Null: they cannot be read. */
  readonly allowed: KeyList | null
  readonly revoked: KeyList | null
  /** What a shim refuses: component to generation; null: none was set yet. */
  readonly sbat_level: Readonly<Record<string, number>> | null
}

const MAX_NAMES = 8

/** For people, a row each; what is not known has none. */
export function listFirmwareFacts(facts: FirmwareFacts): readonly (readonly [string, string])[] {
  const { kind, processor, secure_boot: isOn, allowed, revoked, sbat_level: level } = facts
  if (kind === 'bios') return [['Starts by', 'BIOS']]
  const rows: readonly (readonly [string, string | null])[] = [
    ['Starts by', `UEFI${processor === null ? '' : ` (${processor})`}`],
    ['Secure Boot', isOn === null ? null : isOn ? 'on' : 'off'],
    ['Trusts (db)', allowed && listTrusted(allowed)],
    ['Revoked (dbx)', revoked && String(countEntries(revoked))],
    [
      'SBAT level',
      level &&
        Object.entries(level)
          .map(([name, at]) => `${name} ${at}`)
          .join(', '),
    ],
  ]
  return rows.flatMap(([title, text]) => (text ? [[title, printable(text)] as const] : []))
}

const countEntries = ({ certificates, digests, others }: KeyList) =>
  certificates.length + digests.length / DIGEST_DIGITS + others

function listTrusted(keys: KeyList): string {
  const names = keys.certificates.slice(0, MAX_NAMES).map(({ name }) => name)
  const more = countEntries(keys) - names.length
  return [...names, ...(more === 0 ? [] : [`${more} more`])].join(', ') || 'nobody'
}
