/** What the first bytes of a partition say of its file system: its size, whether it can grow, and whether dm-verity protects it. */
import type { Partition } from './partition-tables.ts'
import type { Range } from './extents.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** `behind`: bytes behind its file system; null: they were not read. */
export interface SeenPartition extends Partition {
  readonly first: Buffer
  readonly behind: Buffer | null
}

/** Types of partitions with hashes, and of what is hashed (discoverable partitions). */
const ROOT: Readonly<Record<string, string>> = {
  '2c7357ed-ebd2-46d9-aec1-23d437ec2bf5': '4f68bce3-e8cd-4db1-96e7-fbcaf984b709', // x86-64
  'df3300ce-d69f-4c92-978c-9bfb0f38d820': 'b921b045-1df0-41c3-af44-4c6f280d3fae', // arm64
}
const USR: Readonly<Record<string, string>> = {
  '77ff5f63-e7b6-4633-acf4-1565b864c0e6': '8484680c-9521-48c6-9c11-b0720656f69e', // x86-64
  '6e11a4e7-fbca-4ded-b9e9-e1a512bb664e': 'b0e01050-ee5f-4390-949a-9101b17104e9', // arm64
}

export const listHashed = (partitions: readonly SeenPartition[]): readonly SeenPartition[] =>
  partitions.filter(
    (data) =>
      (data.behind !== null && readVerityBytes(data.behind) !== null) ||
      partitions.some((hashes) => hashes !== data && isHashedBy(data, hashes)),
  )

function isHashedBy(data: SeenPartition, hashes: SeenPartition): boolean {
  const usr = USR[hashes.type]
  if (usr !== undefined) return usr === data.type
  if (ROOT[hashes.type] === data.type) return true
  const bytes = readVerityBytes(hashes.first)
  const end = locateEnd(data.first)
  return bytes !== null && end !== null && bytes >= end && bytes <= data.bytes
}

/** Bytes; null: no file system that is written here. */
export function locateEnd(first: Buffer): number | null {
  const found = detectGrowable(first)
  const type = found.ok && found.value === 'ext' ? 'ext4' : found.ok ? found.value : ''
  return readFileSystemBytes(type, first)
}

// dm-verity: the superblock of its hashes, and whether a partition's blocks, free ones too, may be hashed beside it.

const SIGNATURE = Buffer.from('verity\0\0', 'latin1')
const AT = { dataBlockBytes: 64, dataBlocks: 72, end: 80 } as const

/** Bytes that are hashed; null: no superblock of dm-verity at these first bytes. */
function readVerityBytes(first: Buffer): number | null {
  if (first.length < AT.end || !first.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null
  return first.readUInt32LE(AT.dataBlockBytes) * Number(first.readBigUInt64LE(AT.dataBlocks))
}

/** The least share of hashes: a digest of 20 bytes for a block of 4096. */
export const MAX_HASHED_SHARE = 256

export interface Neighbour extends Pick<Range, 'bytes'> {
  readonly first: Buffer
  /** Of unknown content: hashes need no superblock. */
  readonly isUnknown: boolean
}

/** `ownBytes`: of the partition's file system. */
export const isHashedBeside = (
  { ownBytes, bytes }: { readonly ownBytes: number; readonly bytes: number },
  neighbours: readonly Neighbour[],
): boolean =>
  neighbours.some(({ first, bytes: hashBytes, isUnknown }) => {
    const hashed = readVerityBytes(first)
    if (hashed !== null) return ownBytes <= hashed && hashed <= bytes
    return isUnknown && hashBytes * MAX_HASHED_SHARE >= ownBytes
  })

/** How large a file system is, as its superblock says. */
const ext = (first: Buffer): number => {
  const at = (offset: number) => first.readUInt32LE(1024 + offset)
  const isLong = (at(0x60) & 0x80) !== 0
  return (at(0x04) + (isLong ? at(0x150) * 2 ** 32 : 0)) * 2 ** (10 + at(0x18))
}

const SIZES: { readonly [Type in string]?: (first: Buffer) => number } = {
  ext2: ext,
  ext3: ext,
  ext4: ext,
  xfs: (first) => first.readUInt32BE(4) * Number(first.readBigUInt64BE(8)),
  /** The part of the file system on this device. */
  btrfs: (first) => Number(first.readBigUInt64LE(0x1_00d1)),
  vfat: (first) =>
    first.readUInt16LE(0x0b) * (first.readUInt16LE(0x13) || first.readUInt32LE(0x20)),
  exfat: (first) => Number(first.readBigUInt64LE(72)) * 2 ** first.readUInt8(108),
  /** One more sector behind it holds a copy of the first. */
  ntfs: (first) => first.readUInt16LE(0x0b) * (Number(first.readBigUInt64LE(0x28)) + 1),
}

/** Null: unknown. `first`: the partition's first 128 KiB; `type`: as blkid names it. */
export function readFileSystemBytes(type: string, first: Buffer): number | null {
  const bytes = SIZES[type]?.(first) ?? 0
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : null
}

const GROWABLE = ['ext', 'xfs', 'btrfs', 'ntfs'] as const
export type Growable = (typeof GROWABLE)[number]

/** Every signature is in a partition's first bytes. */
export const SIGNATURE_BYTES: number = 128 * 1024

interface Signature {
  readonly at: number
  readonly bytes: Buffer
}

const latin1 = (at: number, text: string): Signature => ({ at, bytes: Buffer.from(text, 'latin1') })
const hex = (at: number, text: string): Signature => ({ at, bytes: Buffer.from(text, 'hex') })

const SIGNATURES: Readonly<Record<Growable, Signature>> = {
  ext: hex(1080, '53ef'),
  xfs: latin1(0, 'XFSB'),
  btrfs: latin1(0x1_0040, '_BHRfS_M'),
  ntfs: latin1(3, 'NTFS    '),
}

const OTHERS: readonly (readonly [Signature, string])[] = [
  [latin1(0, 'LUKS\u00ba\u00be'), 'an encrypted volume'],
  [latin1(512, 'LABELONE'), 'an LVM physical volume'],
  [latin1(4086, 'SWAPSPACE2'), 'swap space'],
  [latin1(3, 'EXFAT   '), 'exFAT'],
  [latin1(82, 'FAT32'), 'FAT'],
  [latin1(54, 'FAT'), 'FAT'],
  [hex(1024, '1020f5f2'), 'F2FS'],
  [latin1(0, 'hsqs'), 'squashfs'],
  [hex(1024, 'e2e1f5e0'), 'EROFS'],
]

/** Refused with what the partition holds instead. */
export function detectGrowable(first: Buffer): Result<Growable, string> {
  const found = GROWABLE.find((kind) => isThere(first, SIGNATURES[kind]))
  if (found === 'ext' && hasExtFeature(first, BIGALLOC)) return refuse(BIGALLOC_WORDS)
  if (found === 'btrfs' && countBtrfsDevices(first) !== 1) return refuse(MANY_DEVICES)
  if (found !== undefined) return accept(found)
  const other = OTHERS.find(([signature]) => isThere(first, signature))
  return refuse(other?.[1] ?? 'an unknown file system')
}

const BTRFS = { devices: 0x1_0088, own: 0x1_00c9 } as const
const MANY_DEVICES = 'a btrfs of several devices'

const countBtrfsDevices = (first: Buffer) =>
  first.length < BTRFS.own ? 1 : Number(first.readBigUInt64LE(BTRFS.devices))

/** Not 1 where the file system moved from another device. */
export const readBtrfsNumber = (first: Buffer): number => Number(first.readBigUInt64LE(BTRFS.own))

export const hasFileSystem = (first: Buffer): boolean =>
  GROWABLE.some((kind) => isThere(first, SIGNATURES[kind])) ||
  OTHERS.some(([signature]) => isThere(first, signature))

/** `at`: of their word in the partition. */
interface ExtFeature {
  readonly at: number
  readonly bit: number
}
const BIGALLOC: ExtFeature = { at: 1124, bit: 0x200 }
const ORPHAN_FILE: ExtFeature = { at: 1116, bit: 0x1000 }
const BIGALLOC_WORDS = 'ext4 with bigalloc clusters, which resize2fs does not grow'

const hasExtFeature = (first: Buffer, { at, bit }: ExtFeature) =>
  first.length >= at + 4 && (first.readUInt32LE(at) & bit) !== 0

/** resize2fs 1.47.0 breaks that file when moving inode tables: it is removed, then made again. */
export const hasOrphanFile = (first: Buffer): boolean => hasExtFeature(first, ORPHAN_FILE)

const isThere = (first: Buffer, { at, bytes }: Signature) =>
  first.subarray(at, at + bytes.length).equals(bytes)

const ALWAYS = ['losetup', 'blockdev']
/** To grow it, and to check it afterwards. */
export const GROW_TOOLS: Readonly<Record<Growable, readonly string[]>> = {
  ext: [...ALWAYS, 'mount', 'unshare', 'e2fsck', 'resize2fs', 'tune2fs'],
  xfs: [...ALWAYS, 'mount', 'unshare', 'xfs_growfs'],
  btrfs: [...ALWAYS, 'mount', 'unshare', 'btrfs'],
  ntfs: [...ALWAYS, 'ntfsresize'],
}

/** A clause; `what`: what the partition holds instead. */
export const renderUngrowable = (what: string): string =>
  `its last partition holds ${what} (ext4, XFS, btrfs and NTFS can be grown)`
