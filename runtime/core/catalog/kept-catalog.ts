/** The active manifest: the last good catalog of a cache service, as TOML that people can read. */
import { createHash } from 'node:crypto'
import { stringify } from 'smol-toml'
import { parseJson } from '../foundation/json-text.ts'
import { parseToml } from '../config/toml.ts'

export interface KeptCatalog {
  /** The cache service's address; what was kept of one says nothing of another. */
  readonly base: string
  /** ISO time. */
  readonly fetchedAt: string
  readonly etag: string | null
  /** A catalog document (JSON), with all that it said of each image. */
  readonly text: string
}

const NOTE = [
  '# The images that the cache service listed when it was last asked; made by the server.',
  '# It is read at the next start, until the service has answered. Editing it changes nothing.',
].join('\n')

/** Null where the document is none. */
export function renderKeptCatalog(kept: KeptCatalog): string | null {
  const images = listImages(kept.text)
  if (images === null) return null
  const { base, fetchedAt, etag } = kept
  const head = {
    version: 1,
    cache: base,
    fetched_at: fetchedAt,
    digest: digestOf(images),
    ...(etag === null ? {} : { etag }),
  }
  return `${NOTE}\n\n${stringify({ ...head, images })}\n`
}

/** Null for anything but what was written: the cache service has the original. */
export function parseKeptCatalog(text: string): KeptCatalog | null {
  const document = parseToml(text)
  if (!document.ok) return null
  const { cache, fetched_at, etag, digest, images = [] } = document.value
  // Cut short or edited it would be a catalog still, and the service says that nothing changed.
  if (digest !== digestOf(images)) return null
  if (typeof cache !== 'string' || typeof fetched_at !== 'string') return null
  return {
    base: cache,
    fetchedAt: fetched_at,
    etag: typeof etag === 'string' ? etag : null,
    text: JSON.stringify({ entries: images }),
  }
}

const digestOf = (images: unknown): string =>
  createHash('sha256').update(JSON.stringify(images)).digest('hex')

function listImages(text: string): readonly Readonly<Record<string, Plain>>[] | null {
  const document = parseJson(text)
  if (typeof document !== 'object' || document === null || !('entries' in document)) return null
  const { entries } = document
  return Array.isArray(entries) ? entries.map(plain) : null
}

type Plain = string | number | boolean

/** What an image says of itself is texts, numbers and flags; TOML has no null. */
function plain(entry: unknown): Readonly<Record<string, Plain>> {
  const fields = typeof entry === 'object' && entry !== null ? Object.entries(entry) : []
  return Object.fromEntries(
    fields.flatMap(([key, value]): [string, Plain][] =>
      isPlain(value) ? [[key.toWellFormed(), toWellFormed(value)]] : [],
    ),
  )
}

const isPlain = (value: unknown): value is Plain =>
  typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)

const toWellFormed = (value: Plain): Plain =>
  typeof value === 'string' ? value.toWellFormed() : value
