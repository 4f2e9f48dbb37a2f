/** The active manifest: the last good catalog of a cache service, as TOML that people can read. */
import { createHash } from 'node:crypto'
import { stringify } from 'smol-toml'
import { z } from 'zod'
import { listEntries } from './catalog-document.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { parseToml } from '#kit/config/rules/toml.ts'

export interface KeptCatalog {
  /** The catalog of one service is not that of another. */
  readonly base: string
  /** ISO time. */
  readonly fetchedAt: string
  readonly etag: string | null
  /** A catalog document (JSON), with all that it says of each image. */
  readonly text: string
}

const NOTE = [
  '# The images that the cache service listed when it was last asked; made by the server.',
  '# It is read at the next start, until the service has answered. Editing it changes nothing.',
].join('\n')

export function renderKeptCatalog(kept: KeptCatalog): string | null {
  const images = listEntries(kept.text)?.map(plain)
  if (images === undefined) return null
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

const DocumentSchema = z.object({
  cache: z.string(),
  fetched_at: z.string(),
  etag: z.string().nullable().catch(null),
  digest: z.string(),
  images: z.array(z.unknown()).default([]),
})

/** Null for anything but what was written: the service has the original. */
export function parseKeptCatalog(text: string): KeptCatalog | null {
  const toml = parseToml(text)
  const document = DocumentSchema.safeParse(toml.ok ? toml.value : null)
  if (!document.success) return null
  const { cache: base, fetched_at: fetchedAt, etag, digest, images } = document.data
  // An edited file would still be a catalog, and the service reports no change.
  if (digest !== digestOf(images)) return null
  return { base, fetchedAt, etag, text: JSON.stringify({ entries: images }) }
}

const digestOf = (images: unknown): string =>
  createHash('sha256').update(JSON.stringify(images)).digest('hex')

type Plain = string | number | boolean

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
