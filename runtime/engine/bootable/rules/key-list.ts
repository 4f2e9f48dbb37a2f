/** `db` and `dbx`: signature lists of UEFI (specification 2.10, 32.4.1). Hostile. */
import { renderGuid } from '#engine/disk/rules/partition-tables.ts'
import { describe, oneLine, parseCertificate } from './authenticode.ts'
import { readSection } from './efi-program.ts'
import {
  DIGEST_DIGITS,
  type KeyList,
  MAX_CERTIFICATES,
  MAX_DIGESTS,
} from '#engine/inventory/rules/firmware-facts.ts'

/** Each list: type, its bytes, bytes of its head, bytes of each entry. */
const HEAD_BYTES = 28
/** Each entry begins with who put it there. */
const OWNER_BYTES = 16

const TYPES = {
  sha256: 'c1c41626-504c-4092-aca9-41f936934328',
  x509: 'a5c059a1-94e4-4aa7-87b5-ab155c2bf072',
  x509Sha256: '3bd2a492-96c0-4079-b420-fcf98ef103ed',
} as const

export function parseKeyList(bytes: Buffer): KeyList {
  const certificates: KeyList['certificates'][number][] = []
  let digests = ''
  let others = 0
  for (const { type, data } of listEntries(bytes)) {
    const certificate = type === TYPES.x509 ? parseCertificate(data) : null
    if (certificate !== null && certificates.length < MAX_CERTIFICATES) {
      const { fingerprint, name } = describe(certificate)
      certificates.push({ fingerprint, name, subject: oneLine(certificate.subject) })
    } else if (isDigest(type) && digests.length < MAX_DIGESTS * DIGEST_DIGITS) {
      digests += data.toString('hex', 0, DIGEST_DIGITS / 2).padEnd(DIGEST_DIGITS, '0')
    } else others += 1
  }
  return { certificates, digests, others }
}

/** Whom a shim trusts beside the firmware, and what it never starts. */
export interface VendorKeys {
  readonly trusted: KeyList
  readonly revoked: KeyList
}

/**
 * Of a shim (github.com/rhboot/shim, `cert.S`): a certificate or a list, and a list, by sizes and
 * places. Null: it is no shim, or says nothing that is known here.
 */
export function parseVendorKeys(shim: Buffer): VendorKeys | null {
  const table = readSection(shim, '.vendor_cert')
  if (table === null || table.length < VENDOR_HEAD_BYTES) return null
  const [trusted, revoked] = [0, 4].map((field) => {
    const [size, at] = [table.readUInt32LE(field), table.readUInt32LE(field + 8)]
    return at + size > table.length ? null : table.subarray(at, at + size)
  })
  if (!trusted || !revoked || trusted.length === 0) return null
  return { trusted: parseTrusted(trusted), revoked: parseKeyList(revoked) }
}

function parseTrusted(bytes: Buffer): KeyList {
  const certificate = parseCertificate(bytes)
  if (certificate === null) return parseKeyList(bytes)
  const { fingerprint, name } = describe(certificate)
  const subject = oneLine(certificate.subject)
  return { certificates: [{ fingerprint, name, subject }], digests: '', others: 0 }
}

const VENDOR_HEAD_BYTES = 16

const isDigest = (type: string) => type === TYPES.sha256 || type === TYPES.x509Sha256

function* listEntries(bytes: Buffer) {
  for (let at = 0; at + HEAD_BYTES <= bytes.length;) {
    const type = renderGuid(bytes.toString('hex', at, at + 16))
    const listBytes = bytes.readUInt32LE(at + 16)
    const entryBytes = bytes.readUInt32LE(at + 24)
    const end = at + listBytes
    if (listBytes < HEAD_BYTES || end > bytes.length || entryBytes <= OWNER_BYTES) {
      yield { type: '', data: Buffer.alloc(0) }
      return
    }
    const first = at + HEAD_BYTES + bytes.readUInt32LE(at + 20)
    for (let entry = first; entry + entryBytes <= end; entry += entryBytes) {
      yield { type, data: bytes.subarray(entry + OWNER_BYTES, entry + entryBytes) }
    }
    at = end
  }
}
