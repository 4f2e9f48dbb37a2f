/** Recognises the file systems that can be grown by their first bytes, and names the tools for it. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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
  return refuse(other?.[1] ?? 'no file system that is known')
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

/**
 * resize2fs 1.47.0 breaks that file where it moves the inode tables: it is removed before, and made
 * again afterwards.
 */
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
