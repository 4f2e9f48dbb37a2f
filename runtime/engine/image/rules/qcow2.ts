/** Parses a qcow2 header, and explains why an image cannot be written (QEMU's docs/interop/qcow2). */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { known, refused, type RangeStep } from './image.ts'

/** In bytes; `host`: the file, `guest`: the disk in it. */
export interface Qcow2Header {
  readonly version: 2 | 3
  /** What a target must hold. */
  readonly virtualBytes: number
  /** 9 to 21. */
  readonly clusterBits: number
  readonly clusterBytes: number
  readonly compression: 'zlib' | 'zstd'
  readonly extendedL2: boolean
  readonly l1Offset: number
  /** As many as the virtual size needs; the table may be longer. */
  readonly l1Entries: number
  readonly guestBytesPerTable: number
  readonly refcountOffset: number
  /** 0: no refcount table. */
  readonly refcountBytes: number
  /** The file's size; past all offsets where it is unknown. */
  readonly hostEnd: number
}

export type Qcow2Refusal =
  | { readonly why: 'not-qcow2' }
  | { readonly why: 'header-too-short'; readonly needs: number; readonly has: number }
  | { readonly why: 'unknown-version'; readonly version: number }
  /** By number: with an unknown one nobody may read on. */
  | { readonly why: 'unknown-features'; readonly bits: readonly number[] }
  | { readonly why: 'marked-corrupt' }
  | { readonly why: 'external-data-file' }
  | { readonly why: 'backing-file' }
  | { readonly why: 'encrypted'; readonly method: number }
  | { readonly why: 'unknown-compression'; readonly type: number }
  | { readonly why: 'cluster-size'; readonly bits: number }
  | { readonly why: 'too-big'; readonly virtualBytes: bigint }
  | { readonly why: 'damaged-header'; readonly what: string }

/** All that is looked at. */
export const QCOW2_HEAD_BYTES = 112
/** As the format's own implementations. */
const MAX_L1_BYTES = 32 * 1024 * 1024
const MAX_REFCOUNT_TABLE_BYTES = 8 * 1024 * 1024

const NO_END = Number.MAX_SAFE_INTEGER
const V2_BYTES = 72
const V3_BYTES = 104
const MIN_CLUSTER_BITS = 9
/** Smaller clusters have subclusters of less than a sector. */
const MIN_EXTENDED_CLUSTER_BITS = 14
const MAX_CLUSTER_BITS = 21
/** Incompatible features. Reading does not need reference counts, the dirty bit (0). */
const CORRUPT = 1
const EXTERNAL_DATA = 2
const COMPRESSION = 3
const EXTENDED_L2 = 4
const KNOWN_FEATURES = 0b11111n

/**
 * `head`: QCOW2_HEAD_BYTES, or all. Accepts internal snapshots, as the active tables are in the
 * header. `fileBytes` null: unknown.
 */
export function parseQcow2Header(
  head: Buffer,
  fileBytes: number | null = null,
): Result<Qcow2Header, Qcow2Refusal> {
  if (head.length < 8 || head.readUInt32BE(0) !== 0x514649fb) return refuse({ why: 'not-qcow2' })
  const version = head.readUInt32BE(4)
  if (version !== 2 && version !== 3) return refuse({ why: 'unknown-version', version })
  const needs = version === 2 ? V2_BYTES : V3_BYTES
  if (head.length < needs) return refuse({ why: 'header-too-short', needs, has: head.length })
  const fields = readFields(head, version)
  const refusal = findRefusal(fields, fileBytes)
  return refusal === null ? accept(headerOf(fields, fileBytes)) : refuse(refusal)
}

type HeaderFields = ReturnType<typeof readFields>

function readFields(head: Buffer, version: 2 | 3) {
  const headerBytes = version === 2 ? V2_BYTES : head.readUInt32BE(100)
  const features = version === 2 ? 0n : head.readBigUInt64BE(72)
  return {
    version,
    headerBytes,
    features,
    has: (bit: number) => ((features >> BigInt(bit)) & 1n) === 1n,
    backingOffset: head.readBigUInt64BE(8),
    clusterBits: head.readUInt32BE(20),
    virtualBytes: head.readBigUInt64BE(24),
    encryption: head.readUInt32BE(32),
    l1Entries: head.readUInt32BE(36),
    l1Offset: head.readBigUInt64BE(40),
    refcountOffset: head.readBigUInt64BE(48),
    refcountClusters: head.readUInt32BE(56),
    compression: headerBytes > V3_BYTES && head.length > V3_BYTES ? head.readUInt8(V3_BYTES) : 0,
  }
}

/** In an order in which no check relies on what a later one looks at. */
function findRefusal(fields: HeaderFields, fileBytes: number | null): Qcow2Refusal | null {
  return (
    findUnsupported(fields) ??
    findDamage(fields, fileBytes) ??
    findRefcountDamage(fields, fileBytes)
  )
}

function findUnsupported(fields: HeaderFields): Qcow2Refusal | null {
  const { has, features, clusterBits: bits, compression: type } = fields
  const least = has(EXTENDED_L2) ? MIN_EXTENDED_CLUSTER_BITS : MIN_CLUSTER_BITS
  const checks: readonly (readonly [boolean, Qcow2Refusal])[] = [
    [features > KNOWN_FEATURES, { why: 'unknown-features', bits: unknownBits(features) }],
    [has(CORRUPT), { why: 'marked-corrupt' }],
    [has(EXTERNAL_DATA), { why: 'external-data-file' }],
    [fields.backingOffset !== 0n, { why: 'backing-file' }],
    [fields.encryption !== 0, { why: 'encrypted', method: fields.encryption }],
    [type > 1, { why: 'unknown-compression', type }],
    [bits < least || bits > MAX_CLUSTER_BITS, { why: 'cluster-size', bits }],
  ]
  return checks.find(([hit]) => hit)?.[1] ?? null
}

function findDamage(fields: HeaderFields, fileBytes: number | null): Qcow2Refusal | null {
  const { version, virtualBytes, headerBytes, l1Entries, l1Offset, clusterBits } = fields
  const clusterBytes = 2 ** clusterBits
  const needs = neededL1Entries(fields)
  const outside = Number(l1Offset) + needs * 8 > (fileBytes ?? NO_END)
  const inHeader = needs > 0 && l1Offset < BigInt(clusterBytes)
  const checks: readonly (readonly [boolean, Qcow2Refusal])[] = [
    [virtualBytes > BigInt(NO_END), { why: 'too-big', virtualBytes }],
    [
      version === 3 && (headerBytes < V3_BYTES || headerBytes > clusterBytes),
      damage(`a header of ${headerBytes} bytes`),
    ],
    [
      fields.has(COMPRESSION) !== (fields.compression !== 0),
      damage('compression type and feature bit disagree'),
    ],
    [l1Entries * 8 > MAX_L1_BYTES, damage(`an L1 table of ${l1Entries} entries`)],
    [l1Entries < needs, damage(`an L1 table of ${l1Entries} entries where ${needs} are needed`)],
    [l1Offset % BigInt(clusterBytes) !== 0n, damage('the L1 table is not aligned')],
    [inHeader, damage('the L1 table lies in the header')],
    [outside, damage('the L1 table lies outside the file')],
  ]
  return checks.find(([hit]) => hit)?.[1] ?? null
}

/** Only their place matters: nothing of the guest is there. */
function findRefcountDamage(fields: HeaderFields, fileBytes: number | null): Qcow2Refusal | null {
  const { refcountOffset: offset, refcountClusters: clusters, clusterBits } = fields
  if (clusters === 0) return null
  const clusterBytes = 2 ** clusterBits
  const bytes = clusters * clusterBytes
  const end = Number(offset) + bytes
  const l1Start = Number(fields.l1Offset)
  const inL1 = Number(offset) < l1Start + neededL1Entries(fields) * 8 && end > l1Start
  const checks: readonly (readonly [boolean, string])[] = [
    [bytes > MAX_REFCOUNT_TABLE_BYTES, `a refcount table of ${clusters} clusters`],
    [offset % BigInt(clusterBytes) !== 0n, 'the refcount table is not aligned'],
    [offset < BigInt(clusterBytes), 'the refcount table lies in the header'],
    [inL1, 'the refcount table lies in the L1 table'],
    [end > (fileBytes ?? NO_END), 'the refcount table lies outside the file'],
  ]
  const what = checks.find(([hit]) => hit)?.[1]
  return what === undefined ? null : damage(what)
}

const damage = (what: string): Qcow2Refusal => ({ why: 'damaged-header', what })

const unknownBits = (features: bigint) =>
  Array.from({ length: 64 }, (_, bit) => bit).filter(
    (bit) => (((features & ~KNOWN_FEATURES) >> BigInt(bit)) & 1n) === 1n,
  )

/** An L2 table is one cluster of entries of 8 bytes, or 16 when extended. */
const tableCoverage = ({ clusterBits, has }: HeaderFields) =>
  2 ** (clusterBits + clusterBits - (has(EXTENDED_L2) ? 4 : 3))

const neededL1Entries = (fields: HeaderFields) =>
  Math.ceil(Number(fields.virtualBytes) / tableCoverage(fields))

function headerOf(fields: HeaderFields, fileBytes: number | null): Qcow2Header {
  const { version, clusterBits, has, compression } = fields
  return {
    version,
    virtualBytes: Number(fields.virtualBytes),
    clusterBits,
    clusterBytes: 2 ** clusterBits,
    compression: compression === 1 ? 'zstd' : 'zlib',
    extendedL2: has(EXTENDED_L2),
    l1Offset: Number(fields.l1Offset),
    l1Entries: neededL1Entries(fields),
    guestBytesPerTable: tableCoverage(fields),
    refcountOffset: Number(fields.refcountOffset),
    refcountBytes: fields.refcountClusters * 2 ** clusterBits,
    hostEnd: fileBytes ?? NO_END,
  }
}

const FLATTEN = 'flatten it first: qemu-img convert -O qcow2 <image> <new image>'
const ENCRYPTION: Readonly<Record<number, string>> = { 1: 'AES', 2: 'LUKS' }

const MESSAGES: Cases<'why', Qcow2Refusal, string> = {
  'not-qcow2': () => 'it is not a qcow2 image',
  'header-too-short': ({ needs, has }) =>
    `it is cut off: the header takes ${needs} bytes, the file has ${has}; download or copy it again`,
  'unknown-version': ({ version }) =>
    `it is of version ${version}, and versions 2 and 3 are supported; convert it first: qemu-img convert -O qcow2 <image> <new image>`,
  'unknown-features': ({ bits }) =>
    `it needs features that are not supported (incompatible feature bits ${bits.join(', ')}); convert it first: qemu-img convert -O qcow2 <image> <new image>`,
  'marked-corrupt': () =>
    'it is marked as corrupt; repair it first: qemu-img check -r all <image>, or download it again',
  'external-data-file': () => `its data lies in another file; ${FLATTEN}`,
  'backing-file': () => `it holds only the changes to a backing file; ${FLATTEN}`,
  encrypted: ({ method }) =>
    `it is encrypted (${ENCRYPTION[method] ?? `method ${method}`}); decrypt it first with qemu-img convert`,
  'unknown-compression': ({ type }) =>
    `it is compressed by an unknown method (${type}); convert it first: qemu-img convert -O qcow2 <image> <new image>`,
  'cluster-size': ({ bits }) =>
    `its clusters are of 2^${bits} bytes, which no qcow2 image has; download or copy it again`,
  'too-big': ({ virtualBytes }) => `it claims to hold ${virtualBytes} bytes, more than any disk`,
  'damaged-header': ({ what }) => `its header is damaged: ${what}; download or copy it again`,
}

/** The rest of a sentence that begins with the image's name, with a hint. */
export const renderQcow2Refusal = (refusal: Qcow2Refusal): string =>
  decideCase(MESSAGES, 'why', refusal)

export function measureQcow2(head: Buffer, fileBytes: number | null): RangeStep {
  const header = parseQcow2Header(head, fileBytes)
  return header.ok
    ? known({ kind: 'exact', bytes: header.value.virtualBytes })
    : refused(renderQcow2Refusal(header.refusal))
}
