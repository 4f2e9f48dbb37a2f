/** Divides a disk into its partitions and what lies between them, for a capture. */
import {
  isExtendedType,
  parseDosTable,
  PROTECTIVE,
  readDosEntries,
} from '../../disk/rules/tables/dos-table.ts'
import { hasHeader, parseTable } from '../../disk/rules/tables/gpt.ts'
import { isBootLoaderType, parseGptPartitions } from '../../disk/rules/tables/gpt-partitions.ts'
import type { Range } from '../../disk/rules/extents.ts'

/** The first bytes of a disk, which hold its table. */
export const TABLE_BYTES: number = 1024 * 1024
/** What boot loaders and RAID controllers write into gaps, and the backup GPT, is within so much of their ends. */
const EDGE_BYTES = 1024 * 1024
/** Gaps up to this size are read whole. */
const SMALL_GAP_BYTES = 16 * 1024 * 1024

export interface Area extends Range {
  /** From 1, as in `/dev/sda1`; 0: the whole disk, which has no table; null: no partition. */
  readonly number: number | null
  /** What the table's type says, whatever lies there: other partitions, or only boot loaders. */
  readonly role: 'extended' | 'boot-loader' | null
}

interface AreaDisk {
  readonly sizeBytes: number
  readonly sectorBytes: number
}

/**
 * The disk's parts in their order, which cover all that is to be read: of large gaps only the ends
 * are. Null: the table cannot be relied on, so that everything is to be read. `head`: the disk's
 * first MiB.
 */
export function planAreas(head: Buffer, disk: AreaDisk): readonly Area[] | null {
  const found = listPartitions(head, disk)
  if (found === null) return null
  if (found.length === 0) return [{ number: 0, role: null, offset: 0, bytes: disk.sizeBytes }]
  const partitions = found.toSorted((one, two) => one.offset - two.offset)
  const areas: Area[] = []
  let end = 0
  for (const partition of partitions) {
    if (partition.offset < end || partition.bytes <= 0) return null
    areas.push(...listGap(end, partition.offset, end === 0), partition)
    end = partition.offset + partition.bytes
  }
  return end > disk.sizeBytes ? null : [...areas, ...listGap(end, disk.sizeBytes, false)]
}

/** What lies before the first partition is always read whole. */
function listGap(from: number, to: number, isFirst: boolean): readonly Area[] {
  if (from === to) return []
  if (isFirst || to - from <= SMALL_GAP_BYTES) return [gap(from, to)]
  return [gap(from, from + EDGE_BYTES), gap(to - EDGE_BYTES, to)]
}

const gap = (offset: number, end: number): Area => ({
  number: null,
  role: null,
  offset,
  bytes: end - offset,
})

/** Without a table: none. Null: there is one, but it is damaged, or not the only one. */
function listPartitions(head: Buffer, { sectorBytes }: AreaDisk): readonly Area[] | null {
  const toRange = (first: number, sectors: number): Range => ({
    offset: first * sectorBytes,
    bytes: sectors * sectorBytes,
  })
  if (hasHeader(head, sectorBytes)) {
    const table = parseTable(head, sectorBytes)
    if (table === null || hasOtherEntries(head)) return null
    return parseGptPartitions(table).map(({ number, type, firstSector, lastSector }) => ({
      number,
      role: isBootLoaderType(type) ? 'boot-loader' : null,
      ...toRange(firstSector, lastSector - firstSector + 1),
    }))
  }
  return (parseDosTable(head) ?? []).map(({ number, type, first, sectors }) => ({
    number,
    role: isExtendedType(type) ? 'extended' : null,
    ...toRange(first, sectors),
  }))
}

/** Hybrid tables have partitions in the MBR that the GPT may not know. */
const hasOtherEntries = (head: Buffer): boolean =>
  readDosEntries(head).some(({ type }) => type !== 0 && type !== PROTECTIVE)
