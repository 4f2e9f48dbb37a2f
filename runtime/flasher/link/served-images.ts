/** Parses `GET /images` of a server of the earlier line ("Open routes"). */
import { isRecord } from '../../kit/foundation/shape.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { detectFormat } from '../../engine/image/rules/format.ts'
import type { ImageFormat } from '../../../appliance/disk-images.ts'

export interface ServedImage {
  readonly name: string
  readonly url: string
  /** The format that the name promises; null: none that flasher writes. */
  readonly format: ImageFormat | null
  /** Null: the server does not say. */
  readonly sizeBytes: number | null
}

/** `base`: without a slash at its end. Entries without a name are left out. */
export function parseServedImages(
  base: string,
  document: unknown,
): Result<readonly ServedImage[], 'not-a-list'> {
  if (!Array.isArray(document)) return refuse('not-a-list')
  return accept(
    document.flatMap((entry: unknown) => {
      if (!isRecord(entry)) return []
      const { name, size_bytes: size } = entry
      if (typeof name !== 'string' || name === '' || !name.isWellFormed()) return []
      const url = `${base}/images/${encodeURIComponent(name)}`
      const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0
      return [{ name, url, format: detectFormat(name), sizeBytes: isSize ? size : null }]
    }),
  )
}
