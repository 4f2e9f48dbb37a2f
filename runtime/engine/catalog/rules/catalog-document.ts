/** Parses the cache service's `GET /catalog` into images; a bad entry is skipped, the others are kept. */
import { z } from 'zod'
import { blobUrl } from './cache-entry.ts'
import { type CatalogEntry, type SkippedEntry, decideArch, decideFormat, refOf } from './catalog.ts'
import { parseCatalogFields } from './catalog-fields.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** More than any lab has; the rest is reported as skipped. */
const MAX_ENTRIES = 10_000
const MAX_SKIPPED = 1000

export interface CatalogList {
  readonly entries: readonly CatalogEntry[]
  readonly skipped: readonly SkippedEntry[]
}

const DocumentSchema = z.object({ entries: z.array(z.unknown()) })

/** Null: no catalog at all. */
export const listEntries = (text: string): readonly unknown[] | null =>
  DocumentSchema.safeParse(parseJson(text)).data?.entries ?? null

/** Hostile: refused in words where it is no catalog at all. */
export function parseCatalogDocument(text: string, cacheBase: string): Result<CatalogList, string> {
  const listed = listEntries(text)
  if (listed === null)
    return refuse('the answer is not a catalog (a JSON object with a list of "entries")')
  return accept(collect(listed.slice(0, MAX_ENTRIES), listed.length, cacheBase))
}

function collect(listed: readonly unknown[], total: number, cacheBase: string): CatalogList {
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
    const reason = `the catalog lists ${total} images; only the first ${listed.length} are taken`
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
