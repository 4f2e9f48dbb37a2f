/** Divides a disk into its partitions and what lies between them, for a capture. */
import type { Range } from '#engine/disk/rules/extents.ts'
import type { Contents } from '#engine/disk/rules/lsblk.ts'
import {
  GPT_AT,
  hasDosSignature,
  hasDosStates,
  hasHeader,
  isBootLoaderType,
  isBootSector,
  isExtendedType,
  parseGptPartitions,
  parseTable,
  parseTableSector,
  PROTECTIVE,
  readDosEntries,
  renderGuid,
} from '#engine/disk/rules/partition-tables.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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
const BESIDE = 'the disk has a file system or RAID outside its partitions'

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

/** `data`: one file system. `disk`: all of a disk without a table. */
export type AreaRole = 'disk' | 'data' | 'swap' | 'boot-loader' | 'extended' | 'other'

/** Linux, FAT, NTFS and exFAT, also hidden; Windows recovery, EFI system, extended boot. */
const DOS_DATA: readonly number[] = [
  0x83, 0x01, 0x04, 0x06, 0x07, 0x0b, 0x0c, 0x0e, 0x11, 0x14, 0x16, 0x17, 0x1b, 0x1c, 0x1e, 0x27,
  0xea, 0xef,
]
const DOS_SWAP = 0x82
/** Holds all volumes of a Windows dynamic disk. */
const DYNAMIC_TYPE = 0x42

function roleOfDosType(type: number): AreaRole {
  if (isExtendedType(type)) return 'extended'
  if (type === DOS_SWAP) return 'swap'
  return DOS_DATA.includes(type) ? 'data' : 'other'
}

const SWAP = '0657fd6d-a4ab-43c4-84e5-0933c84b4f4f'

/** Windows' table of dynamic volumes, and those volumes. */
const DYNAMIC_GUIDS: readonly string[] = [
  '5808c8aa-7e8f-42e0-85d2-e1e90434cfb3',
  'af9b60a0-1431-4f62-bc68-3311714a69ad',
]

/**
 * EFI system, extended boot, Microsoft basic data, Windows recovery; Linux data, /home, /srv, /var,
 * /var/tmp, a person's home, Flatcar's root; Linux root, then /usr, of x86, x86-64, ARM, ARM-64,
 * RISC-V-64, PPC64LE, S390X and LoongArch-64.
 */
const DATA: readonly string[] = `
c12a7328-f81f-11d2-ba4b-00a0c93ec93b bc13c2ff-59e6-4262-a352-b275fd6f7172
ebd0a0a2-b9e5-4433-87c0-68b6b72699c7 de94bba4-06d1-4d40-a16a-bfd50179d6ac
0fc63daf-8483-4772-8e79-3d69d8477de4 933ac7e1-2eb4-4f13-b844-0e14e2aef915
3b8f8425-20e0-4f3b-907f-1a25a76f98e8 4d21b016-b534-45c2-a9fb-5c16e091fd2d
7ec6f557-3bc5-4aca-b293-16ef5df639d1 773f91ef-66d4-49b5-bd83-d683bf40ad16
3884dd41-8582-4404-b9a8-e9b84f2df50e 44479540-f297-41b2-9af7-d131d5f0458a
4f68bce3-e8cd-4db1-96e7-fbcaf984b709 69dad710-2ce4-4e3c-b16c-21a1d49abed3
b921b045-1df0-41c3-af44-4c6f280d3fae 72ec70a6-cf74-40e6-bd49-4bda08e8f224
c31c45e6-3f39-412e-80fb-4809c4980599 5eead9a9-fe09-4a1e-a1d7-520d00531306
77055800-792c-4f94-b39a-98c91b762bb6 75250d76-8cc6-458e-bd66-bd47cc81a812
8484680c-9521-48c6-9c11-b0720656f69e 7d0359a3-02b3-4f0a-865c-654403e70625
b0e01050-ee5f-4390-949a-9101b17104e9 beaec34b-8442-439b-a40b-984381ed097d
15bb03af-77e7-4d4a-b12b-c0d084f7491c 8a4f5770-50aa-4ed3-874a-99b710db6fea
e611c702-575c-4cbe-9a46-434fa0bf7e3f
`.split(/\s/)

/** `stored`: the type in hexadecimal, as the table stores it. */
function roleOfGuid(stored: string): AreaRole {
  const type = renderGuid(stored)
  if (type === SWAP) return 'swap'
  if (isBootLoaderType(stored)) return 'boot-loader'
  return DATA.includes(type) ? 'data' : 'other'
}

const isDynamicGuid = (stored: string): boolean => DYNAMIC_GUIDS.includes(renderGuid(stored))
