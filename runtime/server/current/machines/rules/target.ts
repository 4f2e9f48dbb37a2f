/** Current line: decides whether a machine can be flashed: its image, its disk, and whether the image fits. */
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderExactDiskSize, renderExactSize } from '#kit/foundation/size.ts'
import {
  findPicked,
  kindOf,
  renderPicked,
  type DiskPick,
  type PickRefusal,
  type InventoryDisk,
} from '#engine/inventory/rules/machine.ts'
import { targetOf, type Machine } from './machine.ts'
import type { Surroundings } from './surroundings.ts'

/** Why a flash mode boots the disk instead ("Without assignment or serial…"). */
export type Unready = 'locked' | 'no-image' | 'unknown-image' | 'not-an-image' | 'no-target'

export const UNREADY: Readonly<Record<Unready, string>> = {
  locked: 'This machine is locked on the server, so it is not flashed.',
  'no-image': 'The server has no image for this machine.',
  'unknown-image': 'The image of this machine is not in the catalog of the server.',
  'not-an-image': 'The file assigned to this machine is not a disk image.',
  'no-target': 'No target disk is selected for this machine on the server.',
}

type Readiness =
  | { readonly why: Unready }
  | { readonly why: null; readonly image: CatalogEntry; readonly target: DiskPick }

export function checkReadiness(machine: Machine, { findImage }: Surroundings): Readiness {
  if (machine.locked) return { why: 'locked' }
  if (machine.bty_image_ref === null) return { why: 'no-image' }
  const image = findImage(machine.bty_image_ref)
  if (image === null || image.name === '') return { why: 'unknown-image' }
  if (!isFlashable(image)) return { why: 'not-an-image' }
  const target = targetOf(machine)
  return target === null ? { why: 'no-target' } : { why: null, image, target }
}

export type DiskMismatch =
  | { readonly why: 'disk-missing' }
  | { readonly why: 'disk-ambiguous'; readonly count: number }
  | Extract<PickRefusal, { why: 'disk-changed' }>
  | { readonly why: 'disk-read-only' }
  | { readonly why: 'disk-too-small'; readonly needs: number; readonly has: number }

/**
 * Sizes are in bytes. Null: it is exactly one disk and the image fits, or no inventory has come yet
 * (clients post theirs first). `image` null: the disk is only read.
 */
export function findDiskMismatch(
  disks: readonly InventoryDisk[] | null,
  pick: DiskPick,
  image: CatalogEntry | null,
): DiskMismatch | null {
  if (disks === null) return null
  const picked = findPicked(disks, pick)
  if (!picked.ok) return toMismatch(picked.refusal)
  if (image === null) return null
  const disk = picked.value
  if (disk.readonly) return { why: 'disk-read-only' }
  const [needs, has] = [leastBytes(image), disk.size_bytes ?? null]
  return has !== null && needs > has ? { why: 'disk-too-small', needs, has } : null
}

export const toMismatch = (refusal: PickRefusal): DiskMismatch =>
  refusal.why === 'disk-ambiguous' ? { why: refusal.why, count: refusal.disks.length } : refusal

/** `of` is how the disk was selected. */
export function renderDiskMismatch(mismatch: DiskMismatch, of: string): string {
  const name = printable(of)
  switch (mismatch.why) {
    case 'disk-missing':
      return `The disk ${name}, which is selected on the server, is not in this machine.`
    case 'disk-ambiguous':
      return kindOf(of) === 'serial'
        ? `${mismatch.count} disks of this machine have the serial number ${name}. Select one by its WWN or place.`
        : `${mismatch.count} disks of this machine are called ${name}. Select one manually.`
    case 'disk-changed':
      return `Another disk is at ${name}: ${renderPicked(mismatch.is)}. The selected disk was ${renderPicked(mismatch.was)}. Select it again if it is the right one.`
    case 'disk-read-only':
      return `The disk ${name} is read-only.`
    case 'disk-too-small':
      return `The disk ${name} holds ${renderExactDiskSize(mismatch.has)}, the image needs ${renderExactSize(mismatch.needs)}.`
  }
}

/** Compression adds under a 64th. A table-read image may hold more (snapshots) than its disk. */
function leastBytes({ format: stored, sizeBytes }: CatalogEntry): number {
  const format = IMAGE_FORMATS.find((known) => known === stored) ?? null
  if (sizeBytes === null || stored === '' || isOutOfOrder(format)) return 0
  return isStoredRaw(format) ? sizeBytes : sizeBytes - Math.ceil(sizeBytes / 64)
}
