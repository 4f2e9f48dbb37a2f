/** Maps guest offsets of a qcow2 image by its L1 and L2 entries, and joins them to contiguous runs. */
import type { Qcow2Header } from './qcow2.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findFirst } from '#engine/disk/rules/extents.ts'

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
  const known = { fixed, tables: blocks.toSorted(), clusterBytes }
  const index = l2Tables.findIndex(
    (host) => host !== 0 && findInside(known, host, clusterBytes) !== null,
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
