/** Where our programs look for disk images, and the formats that they write to disks. */

/** The image folder of servers and of the live system, which mounts the images partition here. */
export const DEFAULT_IMAGE_ROOT = '/var/lib/flasher/images'

/** The formats, as names of files end, in the order of lists; `rules/format.ts` has a row for each. */
export const IMAGE_FORMATS = ['img.zst', 'img.xz', 'img.gz', 'img.bz2', 'qcow2', 'img'] as const
export type ImageFormat = (typeof IMAGE_FORMATS)[number]

/** The format that our programs write when they pack or capture. */
export const PACKED_FORMAT = 'img.zst' satisfies ImageFormat

/** The format that is stored as it will be on the disk. */
export const RAW_FORMAT = 'img' satisfies ImageFormat

/** The endings of names in the order in which people read them: raw, compressed, others. */
export const IMAGE_ENDINGS: readonly string[] = [
  ...IMAGE_FORMATS.slice(-1),
  ...IMAGE_FORMATS.slice(0, -1),
].map((format) => `.${format}`)
