/** Tracks where a qcow2 image keeps its tables, which must overlap neither guest data nor each other. */
import { findFirst } from '#engine/disk/rules/extents.ts'
import type { Qcow2Header } from './qcow2.ts'
import { L1_ENTRY_BYTES } from './qcow2-tables.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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
