/** Which images the page lists, and in which order: a search by words, a state, a column to sort by. */
import { sortRows, type SortKey } from '#fleet/machine/rules/selection.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import type { CatalogFields } from '#engine/catalog/rules/catalog-fields.ts'

interface ListedImage {
  readonly entry: Pick<
    CatalogFields,
    'name' | 'src' | 'format' | 'arch' | 'sha256' | 'size_bytes' | 'description'
  >
  readonly state: string
  readonly addedAt: string | null
  readonly machines: number | null
}

interface ImageQuery {
  /** Words, each of which must occur in name, format, architecture, description, address or digest. */
  readonly q?: string
  readonly state?: string
  /** A column; `-` before it reverses the order. */
  readonly sort?: string
}

const KEYS = new Map<string, (image: ListedImage) => SortKey>([
  ['state', ({ state }) => state],
  ['name', ({ entry }) => naturalKey(entry.name)],
  ['size', ({ entry }) => entry.size_bytes ?? null],
  ['added', ({ addedAt }) => addedAt],
  ['uses', ({ machines }) => machines],
])

export function selectImages<Row extends ListedImage>(
  rows: readonly Row[],
  { q = '', state, sort = '' }: ImageQuery,
): readonly Row[] {
  const words = q.toLowerCase().split(/\s+/)
  const found = rows.filter((row) => {
    const text = textOf(row)
    return (
      (state === undefined || row.state === state) && words.every((word) => text.includes(word))
    )
  })
  const keyOf = KEYS.get(sort.replace(/^-/, ''))
  return keyOf === undefined ? found : sortRows(found, sort, keyOf)
}

const textOf = ({ entry }: ListedImage): string =>
  [entry.name, entry.format, entry.arch, entry.description, entry.src, entry.sha256]
    .filter((text) => typeof text === 'string')
    .join(' ')
    .toLowerCase()
