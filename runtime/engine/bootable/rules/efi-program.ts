/** Reads a program of UEFI (Microsoft PE and COFF Specification, Authenticode): its processor, who signed it, its SBAT. Hostile. */
import { createHash } from 'node:crypto'
import type { EfiProcessor } from '#engine/inventory/rules/firmware-facts.ts'
import { readChain, type SigningChain } from './authenticode.ts'

const MACHINES: ReadonlyMap<number, EfiProcessor> = new Map([
  [0x8664, 'x64'],
  [0x14c, 'ia32'],
  [0xaa64, 'aa64'],
  [0x1c2, 'arm'],
  [0x5064, 'riscv64'],
])

export interface EfiProgram {
  /** Null: one that is not known here. */
  readonly processor: EfiProcessor | null
  /** What `db` and `dbx` name where they name a program: SHA-256 of Authenticode. */
  readonly digest: string
  /** Those that fit this program. */
  readonly signatures: readonly SigningChain[]
  /** Generations of its components; null: it has no SBAT. */
  readonly sbat: SbatEntries | null
}

const MAX_SIGNATURES = 8
const MAX_SBAT_BYTES = 64 * 1024
/** A signature takes some 10 KiB. */
const MAX_CERTIFICATES_BYTES = 1024 * 1024

interface PeLayout {
  readonly machine: number
  /** The checksum, and the entry of the table of certificates: not part of the digest. */
  readonly checksumAt: number
  readonly entryAt: number
  readonly certificates: { readonly from: number; readonly to: number }
  readonly headBytes: number
  readonly sections: readonly {
    readonly name: string
    readonly at: number
    readonly size: number
    /** As stored: padded. */
    readonly bytes: number
  }[]
}

/** Null: it is none, or its sizes lie. */
export function parseEfiProgram(file: Buffer): EfiProgram | null {
  const layout = readLayout(file)
  if (layout === null) return null
  const digest = digestOf(file, layout)
  const { from, to } = layout.certificates
  const sbat = layout.sections.find(({ name }) => name === '.sbat')
  return {
    processor: MACHINES.get(layout.machine) ?? null,
    digest,
    signatures: listSignatures(file.subarray(from, to), digest),
    sbat:
      sbat === undefined
        ? null
        : parseSbat(file.subarray(sbat.at, sbat.at + Math.min(sbat.size, MAX_SBAT_BYTES))),
  }
}

/** Null: the program has no such section, or is none. */
export function readSection(file: Buffer, wanted: string): Buffer | null {
  const section = readLayout(file)?.sections.find(({ name }) => name === wanted)
  return section === undefined ? null : file.subarray(section.at, section.at + section.size)
}

function readLayout(file: Buffer): PeLayout | null {
  const headers = readHeaders(file)
  const found = headers === null ? null : findCertificates(file, headers)
  if (headers === null || found === null) return null
  const { pe, optional, table, count } = headers
  const strings = file.subarray(
    file.readUInt32LE(pe + 12) + SYMBOL_BYTES * file.readUInt32LE(pe + 16),
  )
  const layout = {
    ...found,
    machine: file.readUInt16LE(pe + 4),
    checksumAt: optional + 64,
    headBytes: file.readUInt32LE(optional + 60),
    sections: Array.from({ length: count }, (_, at) =>
      parseSection(file, table + 40 * at, strings),
    ),
  }
  return isSound(file, layout) ? layout : null
}

type Headers = NonNullable<ReturnType<typeof readHeaders>>

function findCertificates(file: Buffer, { optional, table }: Headers) {
  const magic = file.readUInt16LE(optional)
  const directories = optional + (magic === PLUS ? 112 : 96)
  const entryAt = directories + 4 * 8
  if (entryAt + 8 > table || file.readUInt32LE(directories - 4) <= 4) return null
  const from = file.readUInt32LE(entryAt)
  const bytes = file.readUInt32LE(entryAt + 4)
  const to = from + bytes
  const isOutside = to > file.length || (bytes > 0 && from < table)
  return isOutside || bytes > MAX_CERTIFICATES_BYTES
    ? null
    : { entryAt, certificates: { from, to } }
}

/** Sections that overlap would be more bytes than there are. */
function isSound(file: Buffer, { entryAt, certificates, headBytes, sections }: PeLayout): boolean {
  const hashed = sections.reduce((sum, { bytes }) => sum + bytes, headBytes)
  return (
    headBytes >= entryAt + 8 &&
    hashed <= file.length - (certificates.to - certificates.from) &&
    sections.every(({ at, bytes }) => bytes === 0 || at + bytes <= file.length)
  )
}

/** PE32, and PE32+. */
const PLAIN = 0x10b
const PLUS = 0x20b
const LEAST_OPTIONAL = 72

function readHeaders(file: Buffer) {
  if (file.length < 64 || file.toString('latin1', 0, 2) !== 'MZ') return null
  const pe = file.readUInt32LE(0x3c)
  const optional = pe + 24
  if (optional > file.length || file.toString('latin1', pe, pe + 4) !== 'PE\0\0') return null
  const optionalBytes = file.readUInt16LE(pe + 20)
  const count = file.readUInt16LE(pe + 6)
  const table = optional + optionalBytes
  if (table + 40 * count > file.length || optionalBytes < LEAST_OPTIONAL) return null
  const magic = file.readUInt16LE(optional)
  return magic === PLAIN || magic === PLUS ? { pe, optional, table, count } : null
}

/** The table of symbols lies before the strings that longer names are kept in. */
const SYMBOL_BYTES = 18
const MAX_NAME_BYTES = 64

/** `/37`: its name begins there in the table of strings. */
function readName(file: Buffer, entry: number, strings: Buffer): string {
  const name = file.toString('latin1', entry, entry + 8).replace(/\0+$/, '')
  const at = Number(/^\/(\d+)$/.exec(name)?.[1] ?? 0)
  // The table begins with its size.
  const end = strings.length < 4 ? 0 : Math.min(strings.readUInt32LE(0), at + MAX_NAME_BYTES)
  return at < 4 || at >= end ? name : (strings.toString('latin1', at, end).split('\0', 1)[0] ?? '')
}

function parseSection(file: Buffer, entry: number, strings: Buffer) {
  const name = readName(file, entry, strings)
  const bytes = file.readUInt32LE(entry + 16)
  const size = Math.min(file.readUInt32LE(entry + 8) || Infinity, bytes)
  return { name, at: file.readUInt32LE(entry + 20), size, bytes }
}

/**
 * As EDK II does it: the headers but for the checksum and the entry of the certificates, the sections
 * in their order, and as many bytes as are then left from there on. Bytes between sections shift those.
 */
function digestOf(file: Buffer, layout: PeLayout): string {
  const { checksumAt, entryAt, certificates, headBytes, sections } = layout
  const hash = createHash('sha256')
    .update(file.subarray(0, checksumAt))
    .update(file.subarray(checksumAt + 4, entryAt))
    .update(file.subarray(entryAt + 8, headBytes))
  let hashed = headBytes
  for (const { at, bytes } of sections.toSorted((one, other) => one.at - other.at)) {
    hash.update(file.subarray(at, at + bytes))
    hashed += bytes
  }
  const end = file.length - (certificates.to - certificates.from)
  return hash.update(file.subarray(hashed, end)).digest('hex')
}

/** `WIN_CERTIFICATE`s: a length, a revision, a type, and PKCS #7. */
const PKCS_SIGNED_DATA = 2

function listSignatures(table: Buffer, digest: string) {
  const found: SigningChain[] = []
  for (let at = 0; at + 8 <= table.length && found.length < MAX_SIGNATURES;) {
    const bytes = table.readUInt32LE(at)
    if (bytes < 8 || at + bytes > table.length) break
    if (table.readUInt16LE(at + 6) === PKCS_SIGNED_DATA) {
      const chain = readChain(table.subarray(at + 8, at + bytes), digest)
      if (chain !== null) found.push(chain)
    }
    at += Math.ceil(bytes / 8) * 8
  }
  return found
}

/** Component to generation (github.com/rhboot/shim, SBAT.md). */
export type SbatEntries = Readonly<Record<string, number>>

const MAX_SBAT_ENTRIES = 100

/** Of a program's section, or of the firmware's `SbatLevelRT`: `component,generation` and more, a line each. */
export function parseSbat(bytes: Buffer): SbatEntries {
  const lines = bytes.toString('latin1').split('\0', 1)[0]?.split('\n', MAX_SBAT_ENTRIES) ?? []
  return Object.fromEntries(
    lines.flatMap((line) => {
      const [, component, generation] = /^([\w.-]{1,64}),(\d{1,9})(?:,|\s*$)/.exec(line) ?? []
      return component === undefined ? [] : [[component, Number(generation)] as const]
    }),
  )
}
