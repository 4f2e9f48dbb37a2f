/** The partition that holds images: which one it is, and how it grows to the end of its stick. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import {
  BOOT_AT,
  BOOT_REGION,
  CHECKSUM_OFFSET,
  countClusters,
  IMAGES_VOLUME,
  sectorOf,
  SECTORS_PER_CLUSTER,
  sumBootBytes,
  sumBootRegion,
} from '#appliance/images-volume.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  changeLast,
  GPT_AT,
  type GptPartition,
  type GuidTable,
  hasHeader,
  isSealed,
  moveBackup,
  type MovedBackup,
  parseGptPartitions,
  parseTable,
  seal,
} from './partition-tables.ts'

interface BootMedium {
  /** `/dev/sda`; null: booted over the network. */
  readonly disk: string | null
  readonly partition: string | null
  /** Images lie beside an ISO file, as with Ventoy, or in their folder on a stick of files. */
  readonly hasImages: boolean
}

export interface KernelPartition {
  readonly node: string
  readonly disk: string
  readonly number: number
  /** Null: the table has no names. */
  readonly name: string | null
  /** Inside the machine: nobody plugged it in for its images. */
  readonly isFixed: boolean
}

export type WholeDisk = Pick<KernelPartition, 'node' | 'isFixed'>

export interface DiskSurroundings {
  readonly medium: BootMedium
  readonly parts: readonly KernelPartition[]
  /** None that lies on others (LVM, dm, md): those would be held as well. */
  readonly disks: readonly WholeDisk[]
  readonly labels: ReadonlyMap<string, string>
}

export type GrowablePartition = Pick<KernelPartition, 'node' | 'disk' | 'number'>

interface ImagesPartition {
  readonly node: string
  /** Null: only looked at. */
  readonly growable: GrowablePartition | null
}

/** The first one found; Ventoy's own label comes last. */
const LABELS = [IMAGES_PARTITION.label, IMAGES_PARTITION.name, 'Ventoy'] as const

export function parseBootMedium(text: string): BootMedium {
  const valueOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1] ?? ''
  const node = (key: string) => {
    const value = valueOf(key)
    return /^\/dev\/[\w-]+$/.test(value) ? value : null
  }
  const hasImages = valueOf('medium_file') !== '' || valueOf('images_beside') === 'yes'
  return { disk: node('medium_disk'), partition: node('medium'), hasImages }
}

/**
 * The stick that we run from first; only its images partition grows. Disks inside the machine must
 * stay unmounted to be written, so that a label counts only on what is plugged in, or on our own
 * disk.
 */
export function chooseImagesPartition(around: DiskSurroundings): ImagesPartition | null {
  const { medium, parts, disks, labels } = around
  const named = parts.filter(({ name }) => name === IMAGES_PARTITION.name)
  const own = named.find(({ disk }) => disk === medium.disk)
  if (own !== undefined) return { node: own.node, growable: own }
  const beside = medium.hasImages ? medium.partition : null
  const free = [
    ...parts.filter(({ isFixed }) => !isFixed),
    ...disks.filter(({ node, isFixed }) => !isFixed || node === medium.disk),
  ]
  const known = new Set(free.map(({ node }) => node))
  const wanted = [...named.map(({ node }) => node), ...LABELS.map((label) => labels.get(label))]
  const node = beside ?? wanted.find((each) => each !== undefined && known.has(each))
  return node === undefined ? null : { node, growable: null }
}

export interface VolumeFacts {
  /** The volume's first `BOOT_BYTES`. */
  readonly boot: Buffer
  /** The sector at `ROOT_OFFSET`. */
  readonly root: Buffer
  readonly sectors: number
}

/** `not-ours`: formatted by somebody else, and used as it is. */
export type VolumeRefusal = 'not-ours' | 'partition-too-small'

interface VolumeGrowth {
  /** Room for files before the growth; `toBytes`: after it. */
  readonly fromBytes: number
  readonly toBytes: number
  readonly writes: readonly DiskWrite[]
}

const { sectorBytes, clusterBytes, heapStart, mostClusters, bitmapCluster, rootCluster } =
  IMAGES_VOLUME
const REGION_BYTES = BOOT_REGION.sectors * sectorBytes

export const BOOT_BYTES: number = 2 * REGION_BYTES
export const ROOT_OFFSET: number = sectorOf(rootCluster) * sectorBytes

/**
 * After any number of these writes the volume is whole, and planning again gives the rest. The
 * bitmap may be longer than the volume, not shorter: it comes first. A damaged main boot region is
 * restored from the backup: the backup comes before it.
 */
export function planVolumeGrowth({
  boot,
  root,
  sectors,
}: VolumeFacts): Result<VolumeGrowth, VolumeRefusal> {
  const main = boot.subarray(0, REGION_BYTES)
  const backup = boot.subarray(REGION_BYTES, BOOT_BYTES)
  const region = [main, backup].find(isSound)
  const bitmap = findBitmap(root)
  if (region === undefined || !isLaidOut(region) || bitmap === null) return refuse('not-ours')
  const fromClusters = region.readUInt32LE(BOOT_AT.clusterCount)
  const toClusters = countClusters(sectors)
  if (toClusters < fromClusters) return refuse('partition-too-small')
  const grown = growRegion(region, toClusters, sectors)
  return accept({
    fromBytes: fromClusters * clusterBytes,
    toBytes: toClusters * clusterBytes,
    writes: [
      ...planBitmap(root, bitmap, Math.ceil(toClusters / 8)),
      ...planRegion('backup boot sector', backup, grown, REGION_BYTES),
      ...planRegion('boot sector', main, grown, 0),
    ],
  })
}

const isSound = (region: Buffer) =>
  region.length === REGION_BYTES &&
  region.toString('latin1', BOOT_AT.name, BOOT_AT.name + 8) === 'EXFAT   ' &&
  region.readUInt32LE(CHECKSUM_OFFSET) === sumBootRegion(region)

const isLaidOut = (region: Buffer) =>
  region[BOOT_AT.sectorShift] === Math.log2(sectorBytes) &&
  region[BOOT_AT.clusterShift] === Math.log2(SECTORS_PER_CLUSTER) &&
  region[BOOT_AT.fats] === 1 &&
  region.readUInt32LE(BOOT_AT.fatOffset) === IMAGES_VOLUME.fatStart &&
  region.readUInt32LE(BOOT_AT.fatLength) === IMAGES_VOLUME.fatSectors &&
  region.readUInt32LE(BOOT_AT.heapOffset) === heapStart &&
  region.readUInt32LE(BOOT_AT.rootCluster) === rootCluster &&
  region.readUInt32LE(BOOT_AT.clusterCount) <= mostClusters

function findBitmap(root: Buffer): number | null {
  for (let at = 0; at + 32 <= root.length; at += 32) {
    if (root[at] === 0x81 && root.readUInt32LE(at + 20) === bitmapCluster) return at
  }
  return null
}

function planBitmap(root: Buffer, entry: number, bytes: number): readonly DiskWrite[] {
  if (root.readBigUInt64LE(entry + 24) >= BigInt(bytes)) return []
  const longer = Buffer.from(root)
  longer.writeBigUInt64LE(BigInt(bytes), entry + 24)
  return [{ what: 'length of the bitmap', offset: ROOT_OFFSET, bytes: longer }]
}

/** The first sector alone where only that differs: disks write a sector whole or not at all. */
function planRegion(
  what: string,
  now: Buffer,
  grown: Buffer,
  offset: number,
): readonly DiskWrite[] {
  if (now.equals(grown)) return []
  const isFirstOnly = now.subarray(sectorBytes).equals(grown.subarray(sectorBytes))
  return [{ what, offset, bytes: isFirstOnly ? grown.subarray(0, sectorBytes) : grown }]
}

/** Keeps the checksum: unused boot code makes up for the change. */
function growRegion(region: Buffer, clusters: number, sectors: number): Buffer {
  if (region.readUInt32LE(BOOT_AT.clusterCount) === clusters) return region
  const grown = Buffer.from(region)
  const end = clusters === mostClusters ? heapStart + clusters * SECTORS_PER_CLUSTER : sectors
  grown.writeUInt32LE(clusters, BOOT_AT.clusterCount)
  grown.writeBigUInt64LE(BigInt(end), BOOT_AT.volumeLength)
  grown.writeUInt8(0xff, BOOT_AT.percentInUse)
  return sumTo(grown, sumBootRegion(region))
}

/** Four bytes, eight apart: the sum turns by eight of its 32 bits in between. */
const STEPS = 4
const APART = 8
/** The end of the boot code, which never runs on a volume of ours. */
const END: number = BOOT_AT.signature
const FIRST = END - STEPS * APART
/** Two more bytes that change what the last of the four finds. */
const SALT = FIRST - APART
/** Turns of the sum after the last of the four. */
const TURNS_AFTER = APART - 1

/** Nearly every one of 65,536 salts will do, so that the Error does not happen. */
export function sumTo(region: Buffer, wanted: number): Buffer {
  const tried = Buffer.from(region)
  const before = sumBootBytes(region, { sum: 0, from: 0, to: SALT })
  const behind = undoBootBytes(region, wanted)
  const aims = [behind, lessTheCarry(behind)]
  for (let salt = 0; salt < 0x10000; salt += 1) {
    tried.writeUInt16BE(salt, SALT)
    for (const aim of aims) {
      fill(tried, before, aim)
      if (sumBootBytes(tried, { sum: before, from: SALT, to: END }) === behind) return tried
    }
  }
  throw new Error('no boot code gives the boot region its checksum')
}

/** Each byte sets the eight bits that are lowest at its turn. */
function fill(region: Buffer, before: number, behind: number) {
  region.fill(0, FIRST, END)
  let sum = sumBootBytes(region, { sum: before, from: SALT, to: FIRST })
  for (let at = FIRST; at < END; at += APART) {
    const turnsToCome = END - 1 - at
    region.writeUInt8((turnRight(behind, -turnsToCome) - turnRight(sum, 1)) & 0xff, at)
    sum = sumBootBytes(region, { sum, from: at, to: at + APART })
  }
}

/** The target of the first three bytes where the last of the four carries. */
const lessTheCarry = (sum: number): number =>
  turnRight(turnRight(sum, -TURNS_AFTER) - 0x100, TURNS_AFTER)

/** The sum at `END`, from the final `sum`. */
function undoBootBytes(region: Buffer, sum: number): number {
  let undone = sum
  for (let at = CHECKSUM_OFFSET - 1; at >= END; at -= 1) {
    undone = turnRight(undone - (region[at] ?? 0), -1)
  }
  return undone
}

/** 32 bits; negative turns left. */
function turnRight(value: number, bits: number): number {
  const by = bits & 31
  return ((value >>> by) | (value << (32 - by))) >>> 0
}

/** Our media have these sectors; a disk with larger ones shows no table of ours. */
const SECTOR = 512
/** Partitions begin and end at whole MiB. */
const ALIGNMENT = 2048
export const TABLE_BYTES: number = 64 * SECTOR

export interface TableFacts {
  /** The first and the last `TABLE_BYTES` of the disk. */
  readonly head: Buffer
  readonly tail: Buffer
  readonly diskBytes: number
}

export type TableRefusal = 'no-table' | 'no-partition' | 'not-last' | 'disk-too-small'

type GrownPartition = Pick<GptPartition, 'number' | 'name' | 'firstSector' | 'lastSector'>

interface TableGrowth {
  readonly partition: GrownPartition
  readonly writes: readonly DiskWrite[]
}

/**
 * The backup first: one of the two tables is always whole, and planning again gives the rest. The
 * first sector with its boot code stays.
 */
export function planTableGrowth(
  facts: TableFacts,
  name: string,
): Result<TableGrowth, TableRefusal> {
  const head = findTable(facts)
  const table = head === null ? null : parseTable(head, SECTOR)
  if (head === null || table === null) return refuse('no-table')
  const all = parseGptPartitions(table)
  const found = all.find((each) => each.name === name)
  if (found === undefined) return refuse('no-partition')
  if (all.some(({ firstSector }) => firstSector > found.firstSector)) return refuse('not-last')
  const partition = { ...found, lastSector: chooseLast(found, table, facts.diskBytes) }
  const moved = moveBackup(changeLast(head, table, partition, SECTOR), facts.diskBytes, SECTOR)
  if (!moved.ok) return refuse(moved.refusal === 'disk-too-small' ? 'disk-too-small' : 'no-table')
  return accept({ partition, writes: planWrites(facts, moved.value) })
}

/** The disk's first sectors as they are, or as the backup says that they were. */
function findTable({ head, tail, diskBytes }: TableFacts): Buffer | null {
  if (parseTable(head, SECTOR) !== null) return head
  const header = Buffer.from(tail.subarray(-SECTOR))
  if (!hasHeader(header, 0) || !isSealed(header)) return null
  const entriesLba = Number(header.readBigUInt64LE(GPT_AT.entriesLba))
  const start = entriesLba * SECTOR - (diskBytes - tail.length)
  if (start < 0) return null
  const own = header.subarray(0, header.readUInt32LE(GPT_AT.headerBytes))
  own.writeBigUInt64LE(1n, GPT_AT.myLba)
  own.writeBigUInt64LE(BigInt(diskBytes / SECTOR - 1), GPT_AT.otherLba)
  own.writeBigUInt64LE(2n, GPT_AT.entriesLba)
  seal(own)
  return Buffer.concat([head.subarray(0, SECTOR), header, tail.subarray(start, -SECTOR)])
}

/** Never before its present end; less than a MiB more is not worth a write. */
function chooseLast(partition: GrownPartition, table: GuidTable, diskBytes: number): number {
  const entriesLba = diskBytes / SECTOR - 1 - Math.ceil(table.entries.length / SECTOR)
  const last = Math.floor(entriesLba / ALIGNMENT) * ALIGNMENT - 1
  return last - partition.lastSector < ALIGNMENT ? partition.lastSector : last
}

function planWrites(
  facts: TableFacts,
  { head, backup, offset }: MovedBackup,
): readonly DiskWrite[] {
  const header = head.subarray(SECTOR, 2 * SECTOR)
  const start = Number(header.readBigUInt64LE(GPT_AT.entriesLba)) * SECTOR
  const entryBytes = backup.length - SECTOR
  const wanted: readonly DiskWrite[] = [
    { what: 'backup entries', offset, bytes: backup.subarray(0, entryBytes) },
    { what: 'backup header', offset: offset + entryBytes, bytes: backup.subarray(entryBytes) },
    { what: 'entries', offset: start, bytes: head.subarray(start, start + entryBytes) },
    { what: 'header', offset: SECTOR, bytes: header },
  ]
  return wanted.filter(({ offset: at, bytes }) => !readFacts(facts, at, bytes.length).equals(bytes))
}

function readFacts({ head, tail, diskBytes }: TableFacts, offset: number, length: number): Buffer {
  const from = offset - (diskBytes - tail.length)
  return from >= 0 ? tail.subarray(from, from + length) : head.subarray(offset, offset + length)
}

/** Must be on the medium before the next write. */
export interface DiskWrite {
  readonly what: string
  /** On the disk or in the planned volume. */
  readonly offset: number
  readonly bytes: Buffer
}
