/** Plans the growth of an image's last partition to the end of the disk, in the table in memory. */
import {
  changeDosLast,
  changeLast,
  EFI_SYSTEM,
  hasDosSignature,
  hasHeader,
  isExtendedType,
  moveBackup,
  type MovedBackup,
  parseDosTable,
  parseGptPartitions,
  parseTable,
  type Partition,
  readDosEntries,
} from '#engine/disk/rules/partition-tables.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { locateEnds, type Range } from '#engine/disk/rules/extents.ts'

/** Partitions end at whole MiB. */
const ALIGNMENT = 1024 * 1024

/** The disk that the image is written to; all in bytes. */
export interface GrowthDisk {
  readonly sizeBytes: number
  readonly sectorBytes: number
  /** What lies before `headBytes` and from `tailStart` on is held in memory until the very end. */
  readonly headBytes: number
  readonly tailStart: number
}

export interface LastGrowth {
  /** The partition as it will be; its numbers are bytes on the disk. */
  readonly partition: {
    readonly number: number
    readonly offset: number
    readonly bytes: number
  }
  /** False: it reaches the disk's last MiB already, so that nothing is left to grow. */
  readonly grows: boolean
  /** The disk's first sectors, with the table that says so. */
  readonly head: Buffer
  /** The GPT's backup at the disk's end, of this table; null: the table is an MBR. */
  readonly moved: MovedBackup | null
}

type LastRefusal =
  | 'no-table'
  | 'damaged-table'
  | 'no-partition'
  | 'overlapping'
  | 'logical'
  | 'begins-early'
  | 'disk-too-small'
  | 'efi'
  | 'swap'
  | 'lvm'
  | 'raid'
  | 'encrypted'
  | 'boot-code'
  | 'fat'

/** A partition, in sectors of the disk. */
interface PartitionRange {
  readonly number: number
  readonly first: number
  readonly last: number
  readonly refusal: LastRefusal | null
}

/** `head`: the image's first MiB, or all of it where it is smaller. */
export function planLastGrowth(head: Buffer, disk: GrowthDisk): Result<LastGrowth, LastRefusal> {
  return hasHeader(head, disk.sectorBytes) ? planGpt(head, disk) : planDos(head, disk)
}

function planGpt(head: Buffer, disk: GrowthDisk): Result<LastGrowth, LastRefusal> {
  const { sectorBytes, sizeBytes } = disk
  const table = parseTable(head, sectorBytes)
  if (table === null) return refuse('damaged-table')
  const ranges = parseGptPartitions(table).map(
    ({ number, type, firstSector: first, lastSector: last }): PartitionRange => ({
      number,
      first,
      last,
      refusal: GPT_TYPES[type] ?? null,
    }),
  )
  const found = findLast(ranges, disk)
  if (!found.ok) return found
  const { range, end, grows } = decideEnd(found.value, disk, Infinity)
  const { number } = range
  const changed = changeLast(head, table, { number, lastSector: end }, sectorBytes)
  const moved = moveBackup(changed, sizeBytes, sectorBytes)
  if (!moved.ok) return refuse(moved.refusal === 'disk-too-small' ? 'disk-too-small' : 'no-table')
  const partition = toPartition(range, end, sectorBytes)
  return accept({ partition, grows, head: moved.value.head, moved: moved.value })
}

function planDos(head: Buffer, disk: GrowthDisk): Result<LastGrowth, LastRefusal> {
  const entries = parseDosTable(head)
  if (entries === null) return refuse('no-table')
  const ranges = entries.map(({ number, type, first, sectors }): PartitionRange => ({
    number,
    first,
    last: first + sectors - 1,
    refusal: DOS_TYPES[type] ?? null,
  }))
  const found = findLast(ranges, disk)
  if (!found.ok) return found
  const { range, end, grows } = decideEnd(found.value, disk, place32(found.value))
  const changed = changeDosLast(head, range.number, end - range.first + 1)
  const partition = toPartition(range, end, disk.sectorBytes)
  return accept({ partition, grows, head: changed, moved: null })
}

/** An MBR counts the sectors of a partition in 32 bits. */
const place32 = ({ first }: PartitionRange) => first + 0xffff_fffe

/** The partition behind all others, if it can be worked on while the disk's ends are held back. */
function findLast(
  ranges: readonly PartitionRange[],
  disk: GrowthDisk,
): Result<PartitionRange, LastRefusal> {
  const [last, ...others] = ranges.toSorted((one, two) => two.first - one.first)
  if (last === undefined) return refuse('no-partition')
  if (last.last < last.first) return refuse('damaged-table')
  if (others.some((other) => other.last >= last.first)) return refuse('overlapping')
  if (last.refusal !== null) return refuse(last.refusal)
  return last.first * disk.sectorBytes < disk.headBytes ? refuse('begins-early') : accept(last)
}

/** Its last sector: never before where it ends now, and never in what is held back. */
function decideEnd(range: PartitionRange, { sectorBytes, tailStart }: GrowthDisk, most: number) {
  const limit = (Math.floor(tailStart / ALIGNMENT) * ALIGNMENT) / sectorBytes - 1
  const grows = (range.last + 1) * sectorBytes <= tailStart
  return { range, grows, end: Math.max(range.last, Math.min(limit, most)) }
}

const toPartition = ({ number, first }: PartitionRange, end: number, sectorBytes: number) => ({
  number,
  offset: first * sectorBytes,
  bytes: (end - first + 1) * sectorBytes,
})

/** Types whose partitions hold no file system that grows. */
const GPT_TYPES: { readonly [Type in string]?: LastRefusal } = {
  [EFI_SYSTEM]: 'efi',
  '4861682149646f6e744e656564454649': 'boot-code',
  '6dfd5706aba4c44384e50933c84b4f4f': 'swap',
  '79d3d6e607f5c244a23c238f2a3df928': 'lvm',
  '0f889da1fc053b4da006743f0f84911e': 'raid',
  cb7c7dcaed63534c861c1742536059cc: 'encrypted',
}

const DOS_TYPES: { readonly [Type in number]?: LastRefusal } = {
  0x01: 'fat',
  0x04: 'fat',
  0x05: 'logical',
  0x06: 'fat',
  0x0b: 'fat',
  0x0c: 'fat',
  0x0e: 'fat',
  0x0f: 'logical',
  0x82: 'swap',
  0x85: 'logical',
  0x8e: 'lvm',
  0xef: 'efi',
  0xfd: 'raid',
}

/** Why an image's last partition cannot fill a disk, in words. */
const REASONS: Readonly<Record<LastRefusal, string>> = {
  'no-table': 'it has no partition table for this sector size',
  'damaged-table': 'its partition table is damaged',
  'no-partition': 'its partition table is empty',
  overlapping: 'its partitions overlap',
  logical: 'its last partition is a logical one',
  'begins-early': 'its last partition begins in the first MiB, which is written last',
  'disk-too-small': 'a partition is in the place of the backup GPT',
  efi: 'its last partition is an EFI system partition',
  swap: 'its last partition is swap space',
  lvm: 'its last partition is an LVM physical volume',
  raid: 'its last partition is a member of a RAID',
  encrypted: 'its last partition is encrypted',
  'boot-code': 'its last partition holds boot code',
  fat: 'its last partition is FAT',
}

export const renderLastRefusal = (refusal: LastRefusal): string => REASONS[refusal]

// Decides where a disk is marked before a write, so that one that is smaller than it says is found out.

export const MARK_BYTES = 4096
const MIB = 2 ** 20
/** The distance of marks that lie far behind the image, as a part of their offset. */
const FAR = 64

interface MarkedDisk {
  readonly sizeBytes: number
  /** Where the image ends, as far as that is known before. */
  readonly imageEnd: number
  /** Where a partition will end that grows; null: none does. */
  readonly grownEnd: number | null
}

/**
 * Lists offsets at the disk's end and, where a partition grows, behind the image. A counterfeit card
 * stores what lies behind its real size in its front, or nowhere. Marks as far from each other as the
 * image is long cannot all miss it there: it is written over them, or they are over it.
 */
export function planMarks({ sizeBytes, imageEnd, grownEnd }: MarkedDisk): readonly number[] {
  const { headBytes, tailStart } = locateEnds(sizeBytes)
  const first = Math.ceil(Math.max(imageEnd, headBytes) / MIB) * MIB
  const limit = Math.min(grownEnd ?? 0, tailStart) - MARK_BYTES
  const places: number[] = []
  for (let at = first; at <= limit; at += Math.max(first, Math.ceil(at / FAR / MIB) * MIB)) {
    places.push(at)
  }
  const last = sizeBytes - MARK_BYTES
  return last < tailStart ? places : [...places, last]
}

/** A mark carries its own offset, and the number of its flash. */
export const renderMark = (at: number, flash: string): Buffer =>
  Buffer.alloc(MARK_BYTES, `flasher ${flash} ${at} `.padEnd(64, '.'))

// Reads the logical partitions of an MBR: a chain of small tables in its extended partition.

/** More than any tool makes; a chain that leads back to itself ends here. */
export const MAX_LOGICAL = 128
/** The kernel's number of the first one. */
const FIRST_NUMBER = 5

/** A logical partition; its number is its place in the chain. */
export type Unnumbered = Omit<Partition, 'number' | 'uuid'>

interface Link {
  /** Null: this table has none. */
  readonly partition: Unnumbered | null
  /** Where the next table lies; null: this is the last one. */
  readonly next: number | null
}

/**
 * `sector`: the table at `at`. What does not lie in the extended partition is left out, and ends the
 * chain where it is a link.
 */
export function parseLogicalTable(
  sector: Buffer,
  at: number,
  { extended, sectorBytes }: { readonly extended: Range; readonly sectorBytes: number },
): Link {
  if (!hasDosSignature(sector)) return { partition: null, next: null }
  const end = extended.offset + extended.bytes
  const isInside = ({ offset, bytes }: Range) => offset >= extended.offset && offset + bytes <= end
  const used = readDosEntries(sector).filter(({ type, sectors }) => type !== 0 && sectors !== 0)
  const data = used.find(({ type }) => !isExtendedType(type))
  const link = used.find(({ type }) => isExtendedType(type))
  const next = link === undefined ? null : extended.offset + link.first * sectorBytes
  const partition = data && {
    name: '',
    type: `0x${data.type.toString(16).padStart(2, '0')}`,
    offset: at + data.first * sectorBytes,
    bytes: data.sectors * sectorBytes,
  }
  return {
    partition: partition !== undefined && isInside(partition) ? partition : null,
    next: next !== null && isInside({ offset: next, bytes: sectorBytes }) ? next : null,
  }
}

/** As the kernel does. `identity`: of the disk's MBR, 8 hexadecimal digits. */
export const numberLogical = (
  found: readonly Unnumbered[],
  identity: string,
): readonly Partition[] =>
  found.map((partition, at) => {
    const number = FIRST_NUMBER + at
    return { ...partition, number, uuid: `${identity}-${number.toString(16).padStart(2, '0')}` }
  })
