/** The cache service's `GET /catalog` as a list of images; one bad entry spoils none of the others. */
import { z } from 'zod'
import { blobUrl } from './blob-address.ts'
import { type CatalogEntry, type SkippedEntry, tellArch, tellFormat } from './catalog.ts'
import { type CatalogFields, parseCatalogFields } from './catalog-fields.ts'
import { parseJson } from '../foundation/json-reader.ts'
import { refOf } from '../image/ref.ts'
import { accept, refuse, type Result } from '../foundation/result.ts'

/** More than any lab has; the rest is left out, and said. */
const MAX_ENTRIES = 10_000
const MAX_SKIPPED = 1000

export interface CatalogList {
  readonly entries: readonly CatalogEntry[]
  readonly skipped: readonly SkippedEntry[]
}

const Document = z.object({ entries: z.array(z.unknown()) })

/** The document is hostile: refused in words where it is no catalog at all. */
export function parseCatalogDocument(text: string, cacheBase: string): Result<CatalogList, string> {
  const document = Document.safeParse(parseJson(text))
  if (!document.success) return refuse('the answer is not a catalog (a JSON object with "entries")')
  const { entries: listed } = document.data
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
  const twin = refs.get(ref)
  if (twin !== undefined) return { name, reason: `has the same source as ${twin}` }
  return names.has(name) ? { name, reason: 'another entry has this name' } : null
}

function parseEntry(
  one: unknown,
  index: number,
  cacheBase: string,
): Result<CatalogEntry, SkippedEntry> {
  const fields = parseCatalogFields(one, index)
  if (!fields.ok) return fields
  const { name, src, resolved_src: resolvedSrc } = fields.value
  const ref = refOf(src)
  if (!ref.ok) return refuse({ name, reason: `its source cannot be used: ${src.slice(0, 200)}` })
  return accept({
    ...describe(fields.value),
    ref: ref.value,
    url: blobUrl(cacheBase, resolvedSrc ?? src),
  })
}

function describe(fields: CatalogFields) {
  const { name, src, resolved_src: resolvedSrc, sha256, description } = fields
  const names = [name, resolvedSrc, src]
  return {
    name,
    src,
    resolvedSrc,
    format: tellFormat(fields.format, names),
    arch: tellArch(fields.arch, names),
    sha256,
    sizeBytes: fields.size_bytes,
    description,
  }
}
