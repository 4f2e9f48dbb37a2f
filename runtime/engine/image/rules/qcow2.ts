/** The qcow2 file format: its header, its tables, and why an image cannot be written (QEMU's docs/interop/qcow2). */
import { findFirst } from '#engine/disk/rules/extents.ts'
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { known, type RangeStep, refused } from './image.ts'

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

/** Two guest clusters may share a host cluster: the format allows it. */
type ClusterState =
  | { readonly kind: 'unallocated' }
  | { readonly kind: 'zero' }
  | { readonly kind: 'data'; readonly host: number }
  /** Bit n of `allocated`: subcluster n holds data; the others read as zeros. */
  | { readonly kind: 'subclusters'; readonly host: number; readonly allocated: number }
  /** The stream ends somewhere within `hostBytes`, which count whole sectors. */
  | { readonly kind: 'compressed'; readonly host: number; readonly hostBytes: number }

export type ClusterRun =
  | { readonly kind: 'zeros'; readonly bytes: number }
  | { readonly kind: 'data'; readonly bytes: number; readonly host: number }
  | {
      readonly kind: 'compressed'
      readonly bytes: number
      readonly host: number
      readonly hostBytes: number
      readonly skip: number
    }

export const TABLE_BREAKS = {
  'reserved-bits': 'has bits set that mean nothing',
  unaligned: 'points between two clusters',
  'outside-file': 'points past the end of the file: it is cut short, or the table is damaged',
  'inside-tables': "points into the image's own tables",
  'zero-flag': 'has a flag that its version does not have',
  'subcluster-bits': 'contradicts itself about its subclusters',
} as const
export type TableBreak = keyof typeof TABLE_BREAKS

const HIGH = 2 ** 32
const SECTOR = 512
export const L1_ENTRY_BYTES = 8

/** Host offset of the L2 table, 0: none, and all that it would cover is unallocated. */
export function parseL1Entry(
  table: Buffer,
  index: number,
  header: Qcow2Header,
): Result<number, TableBreak> {
  const high = table.readUInt32BE(index * L1_ENTRY_BYTES)
  const low = table.readUInt32BE(index * L1_ENTRY_BYTES + 4)
  if ((high & 0x7f000000) !== 0 || (low & 0x1ff) !== 0) return refuse('reserved-bits')
  const host = offsetOf(high, low)
  const why = host === 0 ? null : findMisplaced(host, header.clusterBytes, header)
  return why === null ? accept(host) : refuse(why)
}

/** Does not check whether the file has what the entry names. */
export function parseL2Entry(
  table: Buffer,
  index: number,
  header: Qcow2Header,
): Result<ClusterState, TableBreak> {
  const at = index * (header.extendedL2 ? 16 : 8)
  const high = table.readUInt32BE(at)
  const low = table.readUInt32BE(at + 4)
  const bitmaps = header.extendedL2 ? readBitmaps(table, at + 8) : null
  if ((high & 0x40000000) !== 0) return parseCompressed(high, low, bitmaps, header)
  if (hasReservedBits(high, low)) return refuse('reserved-bits')
  const host = offsetOf(high, low)
  if (host % header.clusterBytes !== 0) return refuse('unaligned')
  const hasZeroFlag = (low & 1) === 1
  if (hasZeroFlag && (header.version === 2 || bitmaps !== null)) return refuse('zero-flag')
  return bitmaps === null ? accept(stateOf(host, hasZeroFlag)) : parseSubclusters(host, bitmaps)
}

/** Bits 1 to 8 and 56 to 61. */
const hasReservedBits = (high: number, low: number) =>
  (high & 0x3f000000) !== 0 || (low & 0x1fe) !== 0

function stateOf(host: number, isZero: boolean): ClusterState {
  if (isZero) return { kind: 'zero' }
  return host === 0 ? { kind: 'unallocated' } : { kind: 'data', host }
}

interface Bitmaps {
  readonly zeros: number
  readonly allocated: number
}

const readBitmaps = (table: Buffer, at: number): Bitmaps => ({
  zeros: table.readUInt32BE(at),
  allocated: table.readUInt32BE(at + 4),
})

function parseSubclusters(
  host: number,
  { zeros, allocated }: Bitmaps,
): Result<ClusterState, TableBreak> {
  const isContradiction = (zeros & allocated) !== 0 || (host === 0 && allocated !== 0)
  if (isContradiction) return refuse('subcluster-bits')
  if (allocated === 0) return accept({ kind: zeros === 0 ? 'unallocated' : 'zero' })
  const isWhole = allocated === 0xffffffff
  return accept(isWhole ? { kind: 'data', host } : { kind: 'subclusters', host, allocated })
}

/** Bits 0 to x-1: offset, x to 61: number of further sectors, x = 62 - (cluster bits - 8). */
function parseCompressed(
  high: number,
  low: number,
  bitmaps: Bitmaps | null,
  { clusterBits }: Qcow2Header,
): Result<ClusterState, TableBreak> {
  if (bitmaps !== null && (bitmaps.zeros | bitmaps.allocated) !== 0) {
    return refuse('subcluster-bits')
  }
  const offsetBitsInHigh = 62 - (clusterBits - 8) - 32
  const host = (high & (2 ** offsetBitsInHigh - 1)) * HIGH + low
  const sectors = ((high & 0x3fffffff) >>> offsetBitsInHigh) + 1
  return accept({ kind: 'compressed', host, hostBytes: sectors * SECTOR - (host % SECTOR) })
}

/** Bits 9 to 55 of an entry. */
const offsetOf = (high: number, low: number) =>
  (high & 0x00ffffff) * HIGH + ((low & 0xfffffe00) >>> 0)

function findMisplaced(host: number, bytes: number, header: Qcow2Header): TableBreak | null {
  const { clusterBytes, hostEnd, l1Offset, l1Entries } = header
  if (host % clusterBytes !== 0) return 'unaligned'
  if (host + bytes > hostEnd) return 'outside-file'
  const l1End = l1Offset + l1Entries * L1_ENTRY_BYTES
  return host < l1End && host + bytes > l1Offset ? 'inside-tables' : null
}

/**
 * From the guest offset `from`; `table`: its L2 table, null: none. Ends where bytes are read
 * differently, at the end of table or guest, or soon after `limit` bytes. Compressed runs are one
 * cluster.
 */
export function nextRun(
  table: Buffer | null,
  from: number,
  limit: number,
  header: Qcow2Header,
): Result<ClusterRun, TableBreak> {
  const tableStart = from - (from % header.guestBytesPerTable)
  const end = Math.min(tableStart + header.guestBytesPerTable, header.virtualBytes)
  if (table === null) return accept({ kind: 'zeros', bytes: end - from })
  let run = parseUnit(table, from, end, header)
  while (run.ok && run.value.bytes < limit && from + run.value.bytes < end) {
    const unit = parseUnit(table, from + run.value.bytes, end, header)
    const joined = unit.ok ? join(run.value, unit.value) : null
    // Damage is reported when its turn comes.
    if (joined === null) break
    run = accept(joined)
  }
  return run
}

/** To the end of the cluster, or of the subcluster where only some hold data. */
function parseUnit(
  table: Buffer,
  at: number,
  end: number,
  header: Qcow2Header,
): Result<ClusterRun, TableBreak> {
  const { clusterBytes, guestBytesPerTable } = header
  const within = at % clusterBytes
  const index = Math.floor((at % guestBytesPerTable) / clusterBytes)
  const bytes = Math.min(clusterBytes - within, end - at)
  const state = parseL2Entry(table, index, header)
  if (!state.ok) return state
  const { value } = state
  switch (value.kind) {
    case 'unallocated':
    case 'zero':
      return accept({ kind: 'zeros', bytes })
    case 'data':
      return placed({ kind: 'data', bytes, host: value.host + within }, value.host, header)
    case 'subclusters': {
      const size = clusterBytes / 32
      const isData = ((value.allocated >>> Math.floor(within / size)) & 1) === 1
      const part = Math.min(size - (within % size), bytes)
      return isData
        ? placed({ kind: 'data', bytes: part, host: value.host + within }, value.host, header)
        : accept({ kind: 'zeros', bytes: part })
    }
    case 'compressed': {
      const { host } = value
      if (host >= header.hostEnd) return refuse('outside-file')
      // The last sector of a file need not be whole.
      const hostBytes = Math.min(value.hostBytes, header.hostEnd - host)
      return accept({ kind: 'compressed', bytes, host, hostBytes, skip: within })
    }
  }
}

type DataRun = Extract<ClusterRun, { kind: 'data' }>

/** A file may end inside its last cluster where the guest does: only what is read must be there. */
function placed(
  run: DataRun,
  cluster: number,
  header: Qcow2Header,
): Result<ClusterRun, TableBreak> {
  const why = findMisplaced(cluster, run.host - cluster + run.bytes, header)
  return why === null ? accept(run) : refuse(why)
}

/** Null: they cannot be joined. */
function join(run: ClusterRun, next: ClusterRun): ClusterRun | null {
  if (run.kind === 'zeros' && next.kind === 'zeros') {
    return { kind: 'zeros', bytes: run.bytes + next.bytes }
  }
  if (run.kind === 'data' && next.kind === 'data' && run.host + run.bytes === next.host) {
    return { kind: 'data', bytes: run.bytes + next.bytes, host: run.host }
  }
  return null
}

// Plans the reads of one request to a qcow2 image: parts for one buffer, compressed neighbours in one read.

export interface Part<R extends ClusterRun = ClusterRun> {
  readonly at: number
  readonly guest: number
  readonly run: R
}

type DataPart = Part<Extract<ClusterRun, { kind: 'data' }>>
export type CompressedPart = Part<Extract<ClusterRun, { kind: 'compressed' }>>

export interface HostGroup {
  readonly host: number
  readonly bytes: number
  readonly parts: readonly CompressedPart[]
}

/** Reading a gap up to this is cheaper than another request. */
const WIDEST_GAP = 16 * 1024
/** Longer groups would leave too few to run side by side. */
const LONGEST_GROUP = 512 * 1024

export function sortParts(parts: readonly Part[]) {
  const zeros: Part[] = []
  const data: DataPart[] = []
  const compressed: CompressedPart[] = []
  for (const { at, guest, run } of parts) {
    if (run.kind === 'zeros') zeros.push({ at, guest, run })
    else if (run.kind === 'data') data.push({ at, guest, run })
    else compressed.push({ at, guest, run })
  }
  return { zeros, data, compressed }
}

/** Parallel compression leaves neighbours in the file in any order. */
export function groupCompressed(parts: readonly CompressedPart[]): readonly HostGroup[] {
  const groups: { host: number; bytes: number; parts: CompressedPart[] }[] = []
  for (const part of parts.toSorted((a, b) => a.run.host - b.run.host)) {
    const { host, hostBytes } = part.run
    const group = groups.at(-1)
    if (group !== undefined && isNeighbour(group, host, hostBytes)) {
      group.bytes = Math.max(group.bytes, host + hostBytes - group.host)
      group.parts.push(part)
    } else {
      groups.push({ host, bytes: hostBytes, parts: [part] })
    }
  }
  return groups
}

const isNeighbour = (group: Omit<HostGroup, 'parts'>, host: number, bytes: number) =>
  host - (group.host + group.bytes) <= WIDEST_GAP && host + bytes - group.host <= LONGEST_GROUP

export const clipRun = (run: ClusterRun, bytes: number): ClusterRun =>
  run.bytes <= bytes ? run : { ...run, bytes }

// Tracks where a qcow2 image keeps its tables, which must overlap neither guest data nor each other.

interface Region {
  readonly start: number
  readonly end: number
}

export interface Qcow2Metadata {
  readonly fixed: readonly Region[]
  /** Refcount blocks and L2 tables, a cluster each; ascending. */
  readonly tables: Float64Array
  readonly clusterBytes: number
}

/** `l2-table`: of this L1 entry. */
type MetadataRefusal =
  | { readonly why: 'refcount-block' }
  | { readonly why: 'l2-table'; readonly index: number }

/** Bits 0 to 8 of an entry are reserved; damage in them is no obstacle to reading. */
const OFFSET_BITS = ~0x1ffn

export function parseRefcountTable(table: Buffer): Float64Array {
  const blocks = new Float64Array(table.length / 8)
  let count = 0
  for (let at = 0; at < table.length; at += 8) {
    const host = Number(table.readBigUInt64BE(at) & OFFSET_BITS)
    if (host === 0) continue
    blocks[count] = host
    count += 1
  }
  return blocks.subarray(0, count)
}

/** `l2Tables`: host offsets by L1 entry, 0: none. */
export function planMetadata(
  header: Qcow2Header,
  blocks: Float64Array,
  l2Tables: Float64Array,
): Result<Qcow2Metadata, MetadataRefusal> {
  const { clusterBytes } = header
  const fixed = listFixed(header)
  const none = { fixed, tables: new Float64Array(), clusterBytes }
  if (blocks.some((host) => findInside(none, host, clusterBytes) !== null)) {
    return refuse({ why: 'refcount-block' })
  }
  const places = { fixed, tables: blocks.toSorted(), clusterBytes }
  const index = l2Tables.findIndex(
    (host) => host !== 0 && findInside(places, host, clusterBytes) !== null,
  )
  if (index >= 0) return refuse({ why: 'l2-table', index })
  const allocated = l2Tables.filter((host) => host !== 0)
  const tables = new Float64Array(blocks.length + allocated.length)
  tables.set(blocks)
  tables.set(allocated, blocks.length)
  return accept({ fixed, tables: tables.toSorted(), clusterBytes })
}

/** The first byte of the range at `from` that belongs to the image's own tables. */
export function findInside(
  { fixed, tables, clusterBytes }: Qcow2Metadata,
  from: number,
  bytes: number,
): number | null {
  const end = from + bytes
  const inFixed = fixed.filter((region) => region.start < end && region.end > from)
  const starts = inFixed.map(({ start }) => start)
  const behind = from - clusterBytes
  const next = tables[findFirst(tables.length, (index) => (tables[index] ?? Infinity) > behind)]
  if (next !== undefined && next < end) starts.push(next)
  return starts.length === 0 ? null : Math.max(from, Math.min(...starts))
}

function listFixed(header: Qcow2Header): readonly Region[] {
  const { clusterBytes, l1Offset, l1Entries, refcountOffset, refcountBytes } = header
  const l1Bytes = Math.ceil((l1Entries * L1_ENTRY_BYTES) / clusterBytes) * clusterBytes
  return [
    { start: 0, end: clusterBytes },
    { start: l1Offset, end: l1Offset + l1Bytes },
    { start: refcountOffset, end: refcountOffset + refcountBytes },
  ].filter(({ start, end }) => end > start)
}
