/** Which images the page lists, and in which order: words of the name or the format, a use, a column. */
import type { ImageRow } from '../../../engine/image/rules/image.ts'
import { sortRows, type SortKey } from '../../../fleet/machine/rules/selection.ts'
import { naturalKey } from '../../../kit/net/rules/natural-order.ts'

/** An image, and how many machines it is assigned to. */
export interface UsedImage extends ImageRow {
  readonly users: number
}

/** The parameters of the page's address. */
export interface ShelfQuery {
  /** Words, each of which must occur in the name or be the format. */
  readonly q?: string
  /** `yes`: assigned to a machine, `no`: to none. */
  readonly used?: string
  /** A column; with `-` before it, from the end. */
  readonly sort?: string
}

const KEYS = new Map<string, (image: UsedImage) => SortKey>([
  ['name', ({ name }) => naturalKey(name)],
  ['format', ({ format }) => format],
  ['size', ({ size_bytes }) => size_bytes],
  ['uses', ({ users }) => users],
])

/** Finds the images that hold all words and are used as asked, in the order of the column. */
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
