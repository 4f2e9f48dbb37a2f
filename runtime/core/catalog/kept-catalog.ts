/** The active manifest: the last good catalog of a cache service, as TOML that people can read. */
import { createHash } from 'node:crypto'
import { stringify } from 'smol-toml'
import { z } from 'zod'
import { parseJson } from '../foundation/json-reader.ts'
import { isRecord } from '../foundation/shape.ts'
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

const Kept = z.object({
  cache: z.string(),
  fetched_at: z.string(),
  etag: z.string().nullable().catch(null),
  digest: z.string(),
  images: z.unknown().default([]),
})

/** Null for anything but what was written: the cache service has the original. */
export function parseKeptCatalog(text: string): KeptCatalog | null {
  const document = parseToml(text)
  if (!document.ok) return null
  const kept = Kept.safeParse(document.value)
  // Cut short or edited it would be a catalog still, and the service says that nothing changed.
  if (!kept.success || kept.data.digest !== digestOf(kept.data.images)) return null
  const { cache: base, fetched_at: fetchedAt, etag, images } = kept.data
  return { base, fetchedAt, etag, text: JSON.stringify({ entries: images }) }
}

const digestOf = (images: unknown): string =>
  createHash('sha256').update(JSON.stringify(images)).digest('hex')

const Images = z.object({ entries: z.array(z.unknown()) })

type Plain = string | number | boolean

const listImages = (text: string): readonly Readonly<Record<string, Plain>>[] | null =>
  Images.safeParse(parseJson(text)).data?.entries.map(plain) ?? null

/** What an image says of itself is texts, numbers and flags; TOML has no null. */
function plain(entry: unknown): Readonly<Record<string, Plain>> {
  const fields = isRecord(entry) ? Object.entries(entry) : []
  return Object.fromEntries(
    fields.flatMap(([key, value]): [string, Plain][] => {
      const text = typeof value === 'string' ? value.toWellFormed() : value
      const isPlain = typeof text === 'string' || typeof text === 'boolean' || isSafe(text)
      return isPlain ? [[key.toWellFormed(), text]] : []
    }),
  )
}

const isSafe = (value: unknown): value is number => Number.isSafeInteger(value)
