/** The searches that somebody saved, as the text of a cookie: few, short, and checked when they come back. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface SavedSearch {
  readonly name: string
  readonly q: string
  readonly sort: string
}

export const MAX_NAME = 40
export const MAX_QUERY = 300
const MAX_SORT = 20
const MAX_SEARCHES = 12
/** Browsers drop cookies above 4096 bytes, with name and attributes. */
const MAX_COOKIE = 3600

/** Anything that `renderSaved` did not write counts as nothing. */
export function parseSaved(cookie: string | null): readonly SavedSearch[] {
  if (cookie === null || cookie.length > MAX_COOKIE) return []
  const read = parseJson(Buffer.from(cookie, 'base64url').toString('utf8'))
  return Array.isArray(read) ? read.slice(0, MAX_SEARCHES).flatMap(parseOne) : []
}

function parseOne(each: unknown): readonly SavedSearch[] {
  if (!Array.isArray(each)) return []
  const [name, q, sort] = each.map((text: unknown) => (typeof text === 'string' ? text : ''))
  const isOurs = isWithin(name, MAX_NAME) && isWithin(q, MAX_QUERY)
  return isOurs ? [{ name: printable(name), q, sort: (sort ?? '').slice(0, MAX_SORT) }] : []
}

const isWithin = (text: string | undefined, most: number): text is string =>
  text !== undefined && text !== '' && text.length <= most

/** Without characters that a cookie must escape. */
export const renderSaved = (searches: readonly SavedSearch[]): string =>
  Buffer.from(JSON.stringify(searches.map(({ name, q, sort }) => [name, q, sort]))).toString(
    'base64url',
  )

type SearchRefusal = 'no-name' | 'no-search' | 'too-long' | 'too-many'

/** Replaces one of the same name; sorted by name. */
export function addSaved(
  searches: readonly SavedSearch[],
  given: SavedSearch,
): Result<readonly SavedSearch[], SearchRefusal> {
  const name = printable(given.name.trim())
  const q = given.q.trim()
  if (name === '') return refuse('no-name')
  if (q === '') return refuse('no-search')
  if (name.length > MAX_NAME || q.length > MAX_QUERY) return refuse('too-long')
  const saved = [
    ...searches.filter((each) => each.name !== name),
    { name, q, sort: given.sort.slice(0, MAX_SORT) },
  ].toSorted((a, b) => a.name.localeCompare(b.name, 'en'))
  const isFull = saved.length > MAX_SEARCHES || renderSaved(saved).length > MAX_COOKIE
  return isFull ? refuse('too-many') : accept(saved)
}
