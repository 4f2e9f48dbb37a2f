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
