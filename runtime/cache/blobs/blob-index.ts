/** The images that the cache offers, and the blob of each source: stored on disk, read from memory. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { blobKeyOf, type CacheEntry, keyOf } from '#engine/catalog/rules/cache-entry.ts'
import { parseCatalogFields } from '#engine/catalog/rules/catalog-fields.ts'
import { createQueue } from '#kit/host/queue.ts'
import { selectRecords } from '#kit/host/records.ts'

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)

const StoredSourceSchema = z.object({
  sha256: Sha256,
  sizeBytes: z.number(),
  /** Digest of the image's index, with which its frames were compared; null: it has none. */
  checkedIndex: Sha256.nullable(),
  /** What the source called it at the download (ETag, date); null or absent: nothing. */
  version: z.string().nullable().optional(),
  /** ISO time. */
  fetchedAt: z.string(),
  /** ISO time of the latest look at the source; absent: never. */
  lookedAt: z.string().optional(),
  /** ISO time at which the source was first seen to have changed; null or absent: it has not. */
  movedAt: z.string().nullable().optional(),
})

export type StoredSource = Readonly<z.infer<typeof StoredSourceSchema>>

export type BlobIndex = Awaited<ReturnType<typeof createBlobIndex>>

const ENTRIES = 'entries'

export async function createBlobIndex(records: Storage, onChange: () => void = () => undefined) {
  let entries = parseEntries(await records.getItem(ENTRIES))
  const stored = selectRecords(records, 'blob', StoredSourceSchema)
  const sources = new Map(await stored.list())
  let byKey = mapKeys(entries)
  const enqueue = createQueue(1)

  /** Changes are stored one after the other. */
  const change = (next: (before: readonly CacheEntry[]) => readonly CacheEntry[]) =>
    enqueue(async () => {
      const after = next(entries)
      await records.setItem(ENTRIES, JSON.stringify({ version: 1, entries: after }))
      entries = after
      byKey = mapKeys(after)
      onChange()
    })

  return {
    /** In the order in which they were added. */
    entries: () => entries,
    /** Resolves when the entry is on disk; one of the same name is replaced in its place. */
    saveEntry: (entry: CacheEntry) =>
      change((before) =>
        before.some(({ name }) => name === entry.name)
          ? before.map((one) => (one.name === entry.name ? entry : one))
          : [...before, entry],
      ),
    removeEntry: (name: string) =>
      change((before) => before.filter((entry) => entry.name !== name)),
    find: (key: string) => sources.get(key) ?? null,
    findEntry: (key: string) => byKey.get(key) ?? null,
    sources: (): ReadonlyMap<string, StoredSource> => sources,
    /** On disk before anybody sees it. */
    async store(key: string, source: StoredSource) {
      await stored.write(key, source)
      sources.set(key, source)
      onChange()
    },
    /** Gone for everybody before it is gone from the disk. */
    async forget(key: string) {
      sources.delete(key)
      onChange()
      await stored.remove(key)
    },
  }
}

/** The first entry wins; a key counts more than a source. */
function mapKeys(entries: readonly CacheEntry[]): ReadonlyMap<string, CacheEntry> {
  const bySource = entries.map((entry) => [blobKeyOf(entry.src) ?? '', entry] as const)
  const byBytes = entries.map((entry) => [keyOf(entry), entry] as const)
  return new Map([...bySource.toReversed(), ...byBytes.toReversed()])
}

const EntriesSchema = z.object({ entries: z.array(z.unknown()) })
const Credentials = z.object({ credentials: z.string().nullable() })

function parseEntries(found: unknown): readonly CacheEntry[] {
  const { entries = [] } = EntriesSchema.safeParse(found).data ?? {}
  return entries.flatMap((one, index) => {
    const fields = parseCatalogFields(one, index)
    const { credentials = null } = Credentials.safeParse(one).data ?? {}
    return fields.ok ? [{ ...fields.value, credentials }] : []
  })
}
