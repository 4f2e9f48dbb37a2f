/** GRUB for BIOS on a disk with a GUID partition table: its boot sector, and its core in a partition of its own. */
import { renderProtective, SECTOR_BYTES } from '#build/gpt/table.ts'

/** Offsets that GRUB's own installer fills in (`grub/i386/pc/boot.h`). */
const BOOT_AT = { driveCheck: 0x66, kernelSector: 0x5c, partitions: 446 } as const
/** The last entry of the core's list of its own sectors: first sector, how many, and the segment to load them to. */
const LIST_AT = SECTOR_BYTES - 12
const LOAD_SEGMENT = 0x820
const NO_OPERATION = 0x90

interface BiosPlan {
  /** Debian's `boot.img`, one sector. */
  readonly boot: Buffer
  /** What grub-mkimage made for `i386-pc`. */
  readonly core: Buffer
  /** Where the core will lie. */
  readonly sector: number
  readonly sectors: number
}

/**
 * Plans the disk's first sector, and the core as it is written. Throws when the core is larger than
 * its partition.
 */
export function planBios({ boot, core, sector, sectors }: BiosPlan) {
  const used = Math.ceil(core.length / SECTOR_BYTES)
  if (used > sectors)
    throw new Error(`GRUB takes ${used} sectors, and its partition has ${sectors}`)
  const first = renderProtective()
  boot.copy(first, 0, 0, BOOT_AT.partitions)
  first.writeBigUInt64LE(BigInt(sector), BOOT_AT.kernelSector)
  // The drive that the BIOS names is right, as it is a hard disk.
  first.fill(NO_OPERATION, BOOT_AT.driveCheck, BOOT_AT.driveCheck + 2)
  const placed = Buffer.alloc(used * SECTOR_BYTES)
  core.copy(placed)
  placed.writeBigUInt64LE(BigInt(sector + 1), LIST_AT)
  placed.writeUInt16LE(used - 1, LIST_AT + 8)
  placed.writeUInt16LE(LOAD_SEGMENT, LIST_AT + 10)
  return { first, core: placed }
}
