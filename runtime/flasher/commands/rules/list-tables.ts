/** Earlier line: the tables of `list disks` and `list images`, and what people read of an image. */
import { nameMaker } from '#engine/disk/rules/disk.ts'
import type { DiskRow } from '#engine/disk/rules/lsblk.ts'
import { renderDiskSize, renderSize } from '#kit/foundation/size.ts'
import type { ImageInfo, ImageRow } from '#engine/image/rules/image.ts'

/** The specification's columns, then uses and serial number. */
export const DISK_COLUMNS = [
  { key: 'path' },
  { key: 'size' },
  { key: 'tran', drops: 4 },
  { key: 'vendor', least: 6, drops: 3 },
  { key: 'model', least: 8, cut: 'middle', drops: 1 },
  { key: 'serial', least: 10, cut: 'middle', tells: true },
  { key: 'removable', drops: 2 },
  { key: 'in_use_by', title: 'in use by', least: 9, drops: 0 },
] as const

const IMAGE_NAME = [
  { key: 'name', least: 12, tells: true },
  { key: 'format', drops: 1 },
] as const

export const imageColumns = (isExact: boolean) => [
  ...IMAGE_NAME,
  isExact ? { key: 'size_bytes' } : { key: 'size' },
]

export const renderDiskCells = (disk: DiskRow, isExact: boolean) => ({
  ...disk,
  ...nameMaker(disk),
  size: isExact ? disk.size_bytes : renderDiskSize(disk.size_bytes),
  in_use_by: disk.in_use_by.join(', '),
})

export const renderImageCells = (image: ImageRow) => ({
  ...image,
  size: renderSize(image.size_bytes),
})

/** The specification's fields; for people, sizes in words follow those in bytes. */
export function renderImageFields(image: ImageInfo, isExact: boolean): object {
  const { path, format, size_bytes, virtual_size_bytes, ...rest } = image
  const sized = (name: string, bytes: number | null) =>
    isExact || bytes === null ? {} : { [name]: renderSize(bytes) }
  return {
    path,
    format: format ?? 'null',
    size_bytes,
    ...sized('size', size_bytes),
    virtual_size_bytes,
    ...sized('virtual_size', virtual_size_bytes),
    ...rest,
  }
}
