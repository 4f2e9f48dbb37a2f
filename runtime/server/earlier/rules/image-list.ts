/** Which images the page lists, and in which order: words of the name or the format, a use, a column. */
import type { ImageRow } from '#engine/image/rules/image.ts'
import { type SortKey, sortRows } from '#fleet/machine/rules/query.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'

export interface UsedImage extends ImageRow {
  readonly users: number
}

export interface ShelfQuery {
  /** Each word must occur in the name or be the format. */
  readonly q?: string
  /** `yes`: by a machine, `no`: by none. */
  readonly used?: string
  /** A column; `-` before it reverses. */
  readonly sort?: string
}

const KEYS = new Map<string, (image: UsedImage) => SortKey>([
  ['name', ({ name }) => naturalKey(name)],
  ['format', ({ format }) => format],
  ['size', ({ size_bytes }) => size_bytes],
  ['uses', ({ users }) => users],
])

export function selectImages(
  images: readonly UsedImage[],
  { q = '', used, sort = '' }: ShelfQuery,
): readonly UsedImage[] {
  const words = q.toLowerCase().split(/\s+/)
  const found = images.filter(({ name, format, users }) => {
    const text = `${name} ${format}`.toLowerCase()
    return (
      words.every((word) => text.includes(word)) &&
      (used === 'yes' ? users > 0 : used !== 'no' || users === 0)
    )
  })
  const keyOf = KEYS.get(sort.replace(/^-/, ''))
  return keyOf === undefined ? found : sortRows(found, sort, keyOf)
}
