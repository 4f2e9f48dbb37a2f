/** Divides a disk into its partitions and what lies between them, for a capture. */
import {
  hasDosSignature,
  hasDosStates,
  isBootSector,
  PROTECTIVE,
  readDosEntries,
} from '#engine/disk/rules/tables/partitions.ts'
import {
  GPT_AT,
  hasHeader,
  parseTable,
  parseTableSector,
  parseGptPartitions,
} from '#engine/disk/rules/tables/gpt.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import type { Contents } from '#engine/disk/rules/volume.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  DYNAMIC_TYPE,
  isDynamicGuid,
  roleOfDosType,
  roleOfGuid,
  type AreaRole,
} from './area-role.ts'

export const TABLE_BYTES: number = 1024 * 1024
/** Boot loaders, RAID controllers and the backup GPT write so close to a gap's ends. */
const EDGE_BYTES = 1024 * 1024
/** Gaps up to this size are read whole. */
const SMALL_GAP_BYTES = 16 * 1024 * 1024

export interface Area extends Range {
  /** From 1, as in `/dev/sda1`; 0: a disk without a table; null: no partition. */
  readonly number: number | null
  /** By the table's type; null: no partition. */
  readonly role: AreaRole | null
}

interface AreaDisk {
  readonly sizeBytes: number
  readonly sectorBytes: number
  readonly head: Buffer
  readonly end: Buffer
  readonly contents: Pick<Contents, 'type' | 'table'>
}

const UNCLEAR = 'its partition table is damaged, or there are two'
const DYNAMIC = 'it is a dynamic disk of Windows'
const BESIDE = 'something lies on the disk itself, beside its partition table'

/**
 * In order, covering all that is to be read; of large gaps only the ends and what the table points
 * to. Refused in words where everything is to be read.
 */
export function planAreas(disk: AreaDisk): Result<readonly Area[], string> {
  const found = listPartitions(disk)
  if (!found.ok) return found
  const { partitions, pointed } = found.value
  if (partitions.length === 0) {
    return accept([{ number: 0, role: 'disk', offset: 0, bytes: disk.sizeBytes }])
  }
  const sorted = partitions.toSorted((one, two) => one.offset - two.offset)
  const areas: Area[] = []
  let end = 0
  for (const partition of sorted) {
    if (partition.offset < end || partition.bytes <= 0) return refuse(UNCLEAR)
    areas.push(...listGap(end, partition.offset, pointed), partition)
    end = partition.offset + partition.bytes
  }
  if (end > disk.sizeBytes) return refuse(UNCLEAR)
  return accept([...areas, ...listGap(end, disk.sizeBytes, pointed)])
}

/** What lies before the first partition is always read whole. */
function listGap(from: number, to: number, pointed: Range | null): readonly Area[] {
  if (from === to) return []
  if (from === 0 || to - from <= SMALL_GAP_BYTES) return [gap(from, to)]
  const [first, last] = [from + EDGE_BYTES, to - EDGE_BYTES]
  const isBetween = pointed !== null && pointed.offset < last && endOf(pointed) > first
  const between = isBetween
    ? [gap(Math.max(first, pointed.offset), Math.min(last, endOf(pointed)))]
    : []
  return [gap(from, first), ...between, gap(last, to)]
}

const endOf = ({ offset, bytes }: Range) => offset + bytes

const gap = (offset: number, end: number): Area => ({
  number: null,
  role: null,
  offset,
  bytes: end - offset,
})

interface Listed {
  readonly partitions: readonly Area[]
  readonly isDynamic: boolean
  readonly pointed: Range | null
}

/** Without a table: none. Refused where it is damaged, or others contradict it. */
function listPartitions(disk: AreaDisk): Result<Listed, string> {
  const isGpt = hasHeader(disk.head, disk.sectorBytes)
  const listed = isGpt ? listGpt(disk) : listDos(disk)
  if (listed === null) return refuse(UNCLEAR)
  if (listed.isDynamic) return refuse(DYNAMIC)
  const { type, table } = disk.contents
  const isAlone = type === null && table === (isGpt ? 'gpt' : 'dos')
  return listed.partitions.length === 0 || isAlone ? accept(listed) : refuse(BESIDE)
}

function listGpt({ head, end, sectorBytes }: AreaDisk): Listed | null {
  const table = parseTable(head, sectorBytes)
  if (table === null || !isProtective(head) || isOtherTable(head, end, sectorBytes)) return null
  const found = parseGptPartitions(table)
  const partitions = found.map(({ number, type, firstSector, lastSector }) => ({
    number,
    role: roleOfGuid(type),
    offset: firstSector * sectorBytes,
    bytes: (lastSector - firstSector + 1) * sectorBytes,
  }))
  const backup = Number(head.readBigUInt64LE(sectorBytes + GPT_AT.otherLba)) * sectorBytes
  const offset = Math.max(0, backup - table.entries.length)
  const pointed = { offset, bytes: backup + sectorBytes - offset }
  return { partitions, isDynamic: found.some(({ type }) => isDynamicGuid(type)), pointed }
}

/** Hybrid tables have partitions in the MBR that the GPT may not know. */
const isProtective = (head: Buffer) =>
  hasDosSignature(head) &&
  readDosEntries(head).every(
    ({ type, sectors }) => type === PROTECTIVE || (type === 0 && sectors === 0),
  )

const isOtherTable = (head: Buffer, end: Buffer, sectorBytes: number) =>
  hasHeader(end, 0) &&
  end.readUInt32LE(GPT_AT.entriesCrc) !== head.readUInt32LE(sectorBytes + GPT_AT.entriesCrc)

/** To every kernel an entry with a length is a partition, whatever its type. */
const listUsed = (head: Buffer) => readDosEntries(head).filter(({ sectors }) => sectors !== 0)

function listDos({ head, end, sectorBytes }: AreaDisk): Listed | null {
  // A GPT of which one half is left, or for sectors of another size.
  if (hasHeader(end, 0) || parseTableSector(head) !== null) return null
  const used = hasDosSignature(head) ? listUsed(head) : []
  if (used.length === 0 || isBootCode(head)) return NOTHING
  if (isBootSector(head) || !hasDosStates(head)) return null
  if (used.some(({ type }) => type === PROTECTIVE)) return null
  const partitions = used.map(({ number, type, first, sectors }) => ({
    number,
    role: roleOfDosType(type),
    offset: first * sectorBytes,
    bytes: sectors * sectorBytes,
  }))
  return { partitions, isDynamic: used.some(({ type }) => type === DYNAMIC_TYPE), pointed: null }
}

/** A boot sector has code where a table would be. */
const isBootCode = (head: Buffer) => isBootSector(head) && !hasDosStates(head)

const NOTHING: Listed = { partitions: [], isDynamic: false, pointed: null }
