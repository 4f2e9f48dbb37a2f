/** A stick as our ISO leaves it: three partitions, the last one with images on it, and room behind. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import { renderVolume, type VolumeFile } from '#build/exfat/volume.ts'
import { PARTITION_TYPES, renderTable } from '#build/gpt/table.ts'
import { createSparseDisk, type SparseDisk } from '../disk/sparse-disk.ts'

const SECTOR = 512
const VOLUME = { firstSector: 8192, sectors: 65_536 } as const

export interface StickOptions {
  readonly diskBytes: number
  readonly files: readonly VolumeFile[]
}

export interface Stick {
  readonly disk: SparseDisk
  /** Where the volume begins, in bytes. */
  readonly volumeOffset: number
}

/** As the image, whose backup table lies right behind it, copied to a disk of `diskBytes`. */
export function makeStick({ diskBytes, files }: StickOptions): Stick {
  const disk = createSparseDisk(diskBytes)
  const volumeOffset = VOLUME.firstSector * SECTOR
  const volume = renderVolume({
    sectors: VOLUME.sectors,
    label: IMAGES_PARTITION.label,
    serial: 0x464c4153,
    time: new Date('2026-03-04T05:06:08Z'),
    files,
  })
  for (const { offset, bytes } of volume) disk.write(volumeOffset + offset, bytes)
  const lastSector = VOLUME.firstSector + VOLUME.sectors - 1
  const table = renderTable({
    id: 'test',
    diskSectors: lastSector + 1 + 2048,
    partitions: [
      { name: 'FLASHER_LIVE', type: PARTITION_TYPES.linux, firstSector: 64, lastSector: 4095 },
      { name: 'FLASHER_EFI', type: PARTITION_TYPES.efi, firstSector: 4096, lastSector: 8191 },
      {
        name: IMAGES_PARTITION.name,
        type: PARTITION_TYPES.data,
        firstSector: VOLUME.firstSector,
        lastSector,
      },
    ],
  })
  disk.write(0, renderProtectiveMbr())
  for (const { sector, bytes } of table) disk.write(sector * SECTOR, bytes)
  return { disk, volumeOffset }
}

/** As on our ISO: one entry that covers whatever disk it is on. */
function renderProtectiveMbr(): Buffer {
  const mbr = Buffer.alloc(SECTOR)
  mbr.writeUInt8(0xee, 446 + 4)
  mbr.writeUInt32LE(1, 446 + 8)
  mbr.writeUInt32LE(0xffffffff, 446 + 12)
  mbr.writeUInt16LE(0xaa55, 510)
  return mbr
}
