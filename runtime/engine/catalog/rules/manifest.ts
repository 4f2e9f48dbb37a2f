/** Catalogs as text: TOML manifests, version 1 ("Catalog manifest"), and the cache service's JSON; bad entries are skipped. */
import { createHash } from 'node:crypto'
import { stringify } from 'smol-toml'
import { z } from 'zod'
import { parseToml } from '#kit/config/rules/toml.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { blobUrl, type CatalogFields, parseCatalogFields } from './cache-entry.ts'
import { type CatalogEntry, decideArch, decideFormat, refOf, type SkippedEntry } from './catalog.ts'

const MANIFEST_VERSION = 1
const MAX_IMAGES = 10_000

export interface ManifestImage extends CatalogFields {
  /** As written (`bty_image_ref`, `ref`): `src` may be a cache's address. */
  readonly ref: string | null
  /** Where its table starts, from 1; null: unknown. */
  readonly line: number | null
}

/** Safe to show; `line` from 1, null: the document as a whole. */
export interface ManifestFlaw {
  readonly line: number | null
  readonly reason: string
}

export interface Manifest {
  readonly images: readonly ManifestImage[]
  readonly flaws: readonly ManifestFlaw[]
}

/** Wrong entries become flaws. The refusal holds the line at fault, from 1, or null. */
export function parseManifest(text: string): Result<Manifest, ManifestFlaw> {
  const document = parseToml(text)
  if (!document.ok) {
    const { message, line, column } = document.refusal
    return flaw(`${message} (column ${column})`, line)
  }
  const { version, images = [] } = document.value
  if (version !== MANIFEST_VERSION) {
    const found = version === undefined ? 'none is given' : `this one is ${JSON.stringify(version)}`
    return flaw(
      `a catalog must have version = ${MANIFEST_VERSION}; ${found}`,
      lineOf(text, VERSION),
    )
  }
  if (!Array.isArray(images)) {
    return flaw('"images" must be tables: [[images]]', lineOf(text, IMAGES))
  }
  if (images.length > MAX_IMAGES) return flaw(`lists more than ${MAX_IMAGES} images`, null)
  return accept(collect(images, linesOfTables(text, images.length)))
}

export const renderFlaw = ({ line, reason }: ManifestFlaw): string =>
  line === null ? reason : `line ${line}: ${reason}`

/**
 * Deployed clients compute `ref` from `src` and refuse a manifest where another stands, so that it
 * is there only where it is the same.
 */
export function renderManifest(entries: readonly CatalogEntry[]): string {
  return stringify({ version: MANIFEST_VERSION, images: entries.map(renderRow) })
}

function renderRow(entry: CatalogEntry) {
  const { name, url, ref, sha256, format, sizeBytes, arch, description } = entry
  const own = refOf(url)
  return present({
    name,
    src: url,
    ref: own.ok && own.value === ref ? ref : null,
    [IDENTITY]: ref,
    sha256,
    format,
    size_bytes: sizeBytes,
    arch,
    description,
    any_content: entry.anyContent ?? null,
  })
}

const IDENTITY = 'bty_image_ref'

type ManifestFields = Readonly<Record<string, string | number | boolean | null>>
/** TOML has no null. */
const present = (fields: ManifestFields) =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ''))

function collect(tables: readonly unknown[], lines: readonly (number | null)[]): Manifest {
  const images: ManifestImage[] = []
  const flaws: ManifestFlaw[] = []
  const names = new Set<string>()
  for (const [index, table] of tables.entries()) {
    const line = lines[index] ?? null
    const fields = parseCatalogFields(table, index)
    if (!fields.ok)
      flaws.push({ line, reason: printable(`${fields.refusal.name}: ${fields.refusal.reason}`) })
    else if (names.has(fields.value.name)) {
      flaws.push({ line, reason: printable(`${fields.value.name} is listed twice`) })
    } else {
      names.add(fields.value.name)
      images.push({ ...fields.value, ref: refField(Object(table)), line })
    }
  }
  return { images, flaws }
}

function refField(table: object): string | null {
  const fields = new Map<string, unknown>(Object.entries(table))
  const ref = fields.get(IDENTITY) ?? fields.get('ref')
  return typeof ref === 'string' && /^[0-9a-f]{64}$/i.test(ref) ? ref.toLowerCase() : null
}

const VERSION = /^[ \t]*version[ \t]*=/
const IMAGES = /^[ \t]*(images[ \t]*=|\[[ \t]*images[ \t]*\])/
const TABLE = /^[ \t]*\[\[[ \t]*("images"|'images'|images)[ \t]*\]\]/

const flaw = (reason: string, line: number | null) => refuse({ line, reason })

function lineOf(text: string, pattern: RegExp): number | null {
  const at = text.split('\n').findIndex((line) => pattern.test(line))
  return at < 0 ? null : at + 1
}

/** The parser reports no positions; headers inside a text would make the counts differ. */
function linesOfTables(text: string, count: number): readonly (number | null)[] {
  const found = text.split('\n').flatMap((line, at) => (TABLE.test(line) ? [at + 1] : []))
  return found.length === count ? found : Array.from({ length: count }, () => null)
}

// The active manifest: the last good catalog of a cache service, as TOML that people can read.

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

/** More than any lab has; the rest is reported as skipped. */
const MAX_ENTRIES = 10_000
const MAX_SKIPPED = 1000

export interface CatalogList {
  readonly entries: readonly CatalogEntry[]
  readonly skipped: readonly SkippedEntry[]
}

const EntriesSchema = z.object({ entries: z.array(z.unknown()) })

/** Null: no catalog at all. */
const listEntries = (text: string): readonly unknown[] | null =>
  EntriesSchema.safeParse(parseJson(text)).data?.entries ?? null

/** Hostile: refused in words where it is no catalog at all. */
export function parseCatalogDocument(text: string, cacheBase: string): Result<CatalogList, string> {
  const listed = listEntries(text)
  if (listed === null)
    return refuse('the answer is not a catalog (a JSON object with a list of "entries")')
  return accept(collectEntries(listed.slice(0, MAX_ENTRIES), listed.length, cacheBase))
}

function collectEntries(listed: readonly unknown[], total: number, cacheBase: string): CatalogList {
  const entries: CatalogEntry[] = []
  const skipped: SkippedEntry[] = []
  const names = new Set<string>()
  const refs = new Map<string, string>()
  for (const [index, one] of listed.entries()) {
    const entry = parseEntry(one, index, cacheBase)
    const refusal = entry.ok ? findDouble(entry.value, names, refs) : entry.refusal
    if (refusal !== null) skipped.push(refusal)
    else if (entry.ok) {
      entries.push(entry.value)
      names.add(entry.value.name)
      refs.set(entry.value.ref, entry.value.name)
    }
  }
  if (total > listed.length) {
    const reason = `the catalog lists ${total} images; only the first ${listed.length} are used`
    skipped.unshift({ name: `entries from ${listed.length + 1} on`, reason })
  }
  return { entries, skipped: skipped.slice(0, MAX_SKIPPED) }
}

/** A machine is bound to a `ref`, and manifests may not hold a name twice. */
function findDouble(
  { name, ref }: CatalogEntry,
  names: ReadonlySet<string>,
  refs: ReadonlyMap<string, string>,
): SkippedEntry | null {
  const other = refs.get(ref)
  if (other !== undefined) return { name, reason: `has the same source as ${other}` }
  return names.has(name) ? { name, reason: 'another entry has this name' } : null
}

function parseEntry(
  one: unknown,
  index: number,
  cacheBase: string,
): Result<CatalogEntry, SkippedEntry> {
  const fields = parseCatalogFields(one, index)
  if (!fields.ok) return fields
  const { name, src, resolved_src: resolvedSrc, sha256, size_bytes, description } = fields.value
  const { index_sha256: indexSha256, raw_size_bytes: rawSizeBytes } = fields.value
  const { raw_sha256: rawSha256, added_at: addedAt } = fields.value
  const ref = refOf(src)
  if (!ref.ok) return refuse({ name, reason: `its source cannot be used: ${src.slice(0, 200)}` })
  const names = [name, resolvedSrc, src]
  return accept({
    name,
    src,
    resolvedSrc,
    format: decideFormat(fields.value.format, names),
    arch: decideArch(fields.value.arch, names),
    sha256,
    ...(indexSha256 ? { indexSha256 } : {}),
    ...(rawSizeBytes ? { rawSizeBytes } : {}),
    ...(rawSha256 ? { rawSha256 } : {}),
    ...(addedAt ? { addedAt } : {}),
    sizeBytes: size_bytes,
    description,
    ...(fields.value.any_content ? { anyContent: true } : {}),
    ref: ref.value,
    url: blobUrl(cacheBase, resolvedSrc ?? src),
  })
}
