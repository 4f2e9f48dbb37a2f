/** Which images the page lists, and in which order: a search by words, a state, a column to sort by. */
import { type SortKey, sortRows } from '#fleet/machine/rules/query.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import type { CatalogFields } from '#engine/catalog/rules/cache-entry.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'

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

// Decides which machine server the pages of the cache link back to.

/** No host name with a port is longer. */
const MAX_LENGTH = 300

/** Null: no origin on this cache's host (whatever its port), as no link may lead elsewhere. */
export function parseServerLink(text: string, ownHost: string): string | null {
  const url = text.length > MAX_LENGTH ? null : URL.parse(text)
  const own = URL.parse(`http://${ownHost}`)
  if (url === null || own === null || !/^https?:$/.test(url.protocol)) return null
  // No user, path, query or fragment.
  const isPlain = url.href === `${url.origin}/`
  return isPlain && url.hostname === own.hostname ? url.origin : null
}

/** By a page that reads the catalog first, so that a new image can be selected at once. */
export const linkToServer = (origin: string, path: string): string =>
  `${origin}/ui/cache/back?to=${encodeURIComponent(path)}`

const COOKIE = 'flasher-server'
const WEEK_SECONDS = 7 * 24 * 3600

export const renderServerCookie = (origin: string): string =>
  `${COOKIE}=${encodeURIComponent(origin)}; Path=/ui; Max-Age=${WEEK_SECONDS}; HttpOnly; SameSite=Strict`

/** Null: none. Callers check it again, as anybody can send a cookie. */
export function readServerCookie(header: string | null): string | null {
  const [, value] = new RegExp(`(?:^|; *)${COOKIE}=([^;]+)`).exec(header ?? '') ?? []
  return value === undefined ? null : decodePart(value)
}
