/** Grows a stick in memory by the plans of the product, one write at a time. */
import { IMAGES_PARTITION } from '#appliance/contract.ts'
import {
  BOOT_BYTES,
  type DiskWrite,
  planTableGrowth,
  planVolumeGrowth,
  ROOT_OFFSET,
  TABLE_BYTES,
  type TableFacts,
  type VolumeFacts,
} from '#engine/disk/rules/images-partition.ts'
import type { SectorDisk } from './sparse-disk.ts'

const SECTOR = 512

export const readTable = (disk: SectorDisk): TableFacts => ({
  head: disk.read(0, TABLE_BYTES),
  tail: disk.read(disk.bytes - TABLE_BYTES, TABLE_BYTES),
  diskBytes: disk.bytes,
})

export const readVolume = (disk: SectorDisk, offset: number): Omit<VolumeFacts, 'sectors'> => ({
  boot: disk.read(offset, BOOT_BYTES),
  root: disk.read(offset + ROOT_OFFSET, SECTOR),
})

/** What a run of the program would write now, with offsets on the disk: first the table alone. */
export function planNextWrites(disk: SectorDisk): readonly DiskWrite[] {
  const table = planTableGrowth(readTable(disk), IMAGES_PARTITION.name)
  if (!table.ok) throw new Error(table.refusal)
  if (table.value.writes.length > 0) return table.value.writes
  const { firstSector, lastSector } = table.value.partition
  const offset = firstSector * SECTOR
  const volume = planVolumeGrowth({
    ...readVolume(disk, offset),
    sectors: lastSector + 1 - firstSector,
  })
  if (!volume.ok) throw new Error(volume.refusal)
  return volume.value.writes.map((write) => ({ ...write, offset: offset + write.offset }))
}

/** Grows the stick; all writes in their order. */
export function growWhole(disk: SectorDisk): readonly DiskWrite[] {
  const done: DiskWrite[] = []
  for (;;) {
    const writes = planNextWrites(disk)
    if (writes.length === 0) return done
    for (const { offset, bytes } of writes) disk.write(offset, bytes)
    done.push(...writes)
    if (done.length > 40) throw new Error('the growth does not come to an end')
  }
}
