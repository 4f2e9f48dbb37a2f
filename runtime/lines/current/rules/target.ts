/** Current line: decides whether a machine can be flashed: its image, its disk, and whether the image fits. */
import { isFlashable, type CatalogEntry } from '../../../core/catalog/catalog.ts'
import { identifyDisk, type InventoryDisk } from '../../../core/machine/machine.ts'
import type { Machine } from './machine.ts'
import type { Surroundings } from './surroundings.ts'

/** Why a flash mode boots the disk instead ("Without assignment or serial…"). */
export type Unready = 'locked' | 'no-image' | 'unknown-image' | 'not-an-image' | 'no-target'

type Readiness =
  | { readonly why: Unready }
  | { readonly why: null; readonly image: CatalogEntry; readonly serial: string }

/** What a flash mode needs before the live system is worth booting. */
export function checkReadiness(machine: Machine, { findImage }: Surroundings): Readiness {
  if (machine.locked) return { why: 'locked' }
  if (machine.bty_image_ref === null) return { why: 'no-image' }
  const image = findImage(machine.bty_image_ref)
  if (image === null || image.name === '') return { why: 'unknown-image' }
  if (!isFlashable(image)) return { why: 'not-an-image' }
  const serial = machine.target_disk_serial?.trim() ?? ''
  return serial === '' ? { why: 'no-target' } : { why: null, image, serial }
}

/** What is wrong with the disk that was picked, by the newest inventory. */
export type DiskMismatch =
  | { readonly why: 'disk-missing' }
  | { readonly why: 'disk-ambiguous'; readonly count: number }
  | { readonly why: 'disk-read-only' }
  | { readonly why: 'disk-too-small'; readonly needs: number; readonly has: number }

/**
 * Null: it is exactly one disk, or no inventory has come yet (clients post theirs first). `image`
 * null: the disk is only read.
 */
export function findDiskMismatch(
  disks: readonly InventoryDisk[] | null,
  serial: string,
  image: CatalogEntry | null,
): DiskMismatch | null {
  if (disks === null) return null
  const [disk, ...others] = disks.filter((known) => identifyDisk(known) === serial)
  if (disk === undefined) return { why: 'disk-missing' }
  if (others.length > 0) return { why: 'disk-ambiguous', count: others.length + 1 }
  if (image === null) return null
  if (disk.readonly) return { why: 'disk-read-only' }
  const [needs, has] = [leastBytes(image), disk.size_bytes ?? null]
  return has !== null && needs > has ? { why: 'disk-too-small', needs, has } : null
}

/**
 * How big a disk must be at the least. Compressors add less than a 64th to what they cannot
 * compress; a qcow2 may hold more (snapshots) than its disk.
 */
function leastBytes({ format, sizeBytes }: CatalogEntry): number {
  if (sizeBytes === null || format === 'qcow2' || format === '') return 0
  return format === 'img' ? sizeBytes : sizeBytes - Math.ceil(sizeBytes / 64)
}
