/** Picks the images that Raspberry Pi Imager can write, as its list names them (`GET /imager.json`). */
import { IMAGE_FORMATS, type ImageFormat } from '#appliance/disk-images.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'
import type { ListedImage } from '#appliance/imager-list.ts'

interface OfferedImage {
  readonly name: string
  readonly description: string | null
  readonly format: string | null
  readonly arch: string | null
  readonly sizeBytes: number | null
  readonly rawSizeBytes: number | null
  readonly rawSha256: string | null
  /** Of the stored bytes; null: unknown. */
  readonly sha256: string | null
  /** ISO time; null: unknown. */
  readonly addedAt: string | null
  readonly url: string
}

export const listForImager = (images: readonly OfferedImage[]): readonly ListedImage[] =>
  images.flatMap((image) => {
    const format = findWritable(image.format)
    if (format === null) return []
    const { name, description, arch, sizeBytes, addedAt } = image
    const isRaw = isStoredRaw(format)
    return [
      {
        name,
        description: description ?? '',
        url: nameEnd(image.url, format),
        rawSizeBytes: isRaw ? sizeBytes : image.rawSizeBytes,
        rawSha256: isRaw ? image.sha256 : image.rawSha256,
        sizeBytes,
        releaseDate: addedAt?.slice(0, 10) ?? null,
        arch,
      },
    ]
  })

function findWritable(format: string | null): ImageFormat | null {
  const known = IMAGE_FORMATS.find((one) => one === format)
  return known === undefined || isOutOfOrder(known) ? null : known
}

/** The Imager goes by the end of an address alone; the last part of a cache's address is free. */
function nameEnd(url: string, format: ImageFormat): string {
  const end = `.${format}`
  if (url.toLowerCase().endsWith(end)) return url
  return /\/b\/[\w-]+\/[^/]*$/.test(url) ? `${url}${end}` : url
}
