/** Places the images partition on a hybrid ISO; `build/programs/iso.ts` says what is inside it. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import {
  BACKUP_SECTORS,
  parseSpans,
  PARTITION_TYPES,
  renderTable,
  SECTOR_BYTES,
  type TablePiece,
} from '#build/gpt/table.ts'

const MIB = 2048
const PROTECTIVE = 0xee
/** A protective entry of this size covers a disk of any size, because the image is written to larger disks. */
const WHATEVER = 0xffffffff

interface HybridPlan {
  readonly id: string
  /** The ISO's first 64 sectors, as xorriso wrote them: two partitions, system and EFI. */
  readonly head: Buffer
  /** The sectors of the images partition. */
  readonly imagesSectors: number
}

interface Hybrid {
  readonly imagesStart: number
  /** The sectors of the whole image; all counts are in sectors of 512 bytes. */
  readonly sectors: number
  readonly pieces: readonly TablePiece[]
}

/**
 * Plans the whole image, in sectors of 512 bytes. Throws when xorriso has not made exactly the two
 * partitions that we expect.
 */
export function planHybrid({ id, head, imagesSectors }: HybridPlan): Hybrid {
  const [system, efi, ...others] = parseSpans(head)
  if (system === undefined || efi === undefined || others.length > 0) {
    throw new Error('the ISO must have exactly two partitions, system and EFI')
  }
  const imagesStart = alignUp(Math.max(system.lastSector, efi.lastSector) + 1)
  const sectors = alignUp(imagesStart + imagesSectors + BACKUP_SECTORS)
  const table = renderTable({
    id,
    diskSectors: sectors,
    partitions: [
      { ...system, name: 'FLASHER_LIVE', type: PARTITION_TYPES.linux },
      { ...efi, name: 'FLASHER_EFI', type: PARTITION_TYPES.efi },
      {
        name: IMAGES_PARTITION.name,
        type: PARTITION_TYPES.data,
        firstSector: imagesStart,
        lastSector: imagesStart + imagesSectors - 1,
      },
    ],
  })
  return { imagesStart, sectors, pieces: [{ sector: 0, bytes: coverAll(head) }, ...table] }
}

const alignUp = (sector: number) => Math.ceil(sector / MIB) * MIB

function coverAll(head: Buffer): Buffer {
  const mbr = Buffer.from(head.subarray(0, SECTOR_BYTES))
  for (let at = 446; at < 510; at += 16) {
    if (mbr[at + 4] === PROTECTIVE) mbr.writeUInt32LE(WHATEVER, at + 12)
  }
  return mbr
}
