/** The images that the cache offers, and the blob of each source: stored on disk, read from memory. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { blobKeyOf, type CacheEntry, keyOf } from '../../engine/catalog/rules/cache-entry.ts'
import { parseCatalogFields } from '../../engine/catalog/rules/catalog-fields.ts'
import { createQueue } from '../../kit/host/queue.ts'
import { selectRecords } from '../../kit/host/records.ts'

const Sha256 = z.string().regex(/^[0-9a-f]{64}$/)

const StoredSourceSchema = z.object({
  sha256: Sha256,
  sizeBytes: z.number(),
  /**
   * The digest of the image's index, with which its frames were compared; null: it has none;
   * absent: not compared yet.
   */
  checkedIndex: Sha256.nullable().optional(),
  /**
   * What the source called this version when it was downloaded (an ETag, a date); null or absent:
   * it named none.
   */
  version: z.string().nullable().optional(),
  /** ISO time. */
  fetchedAt: z.string(),
  /** ISO time when the source was last looked at since; absent: never. */
  lookedAt: z.string().optional(),
  /** ISO time when it was first seen that the source has something else; null or absent: it was not. */
  movedAt: z.string().nullable().optional(),
})

/** The bytes of one source. */
export type StoredSource = Readonly<z.infer<typeof StoredSourceSchema>>

export type BlobIndex = Awaited<ReturnType<typeof createBlobIndex>>

const ENTRIES = 'entries'

/** Opens the index that `records` hold; `onChange` hears of each change. */
export async function createBlobIndex(records: Storage, onChange: () => void = () => undefined) {
  let entries = parseEntries(await records.getItem(ENTRIES))
  const stored = selectRecords(records, 'blob', StoredSourceSchema)
  const sources = new Map(await stored.list())
  let byKey = mapKeys(entries)
  const enqueue = createQueue(1)

  /** One after the other, each from what the one before it made. */
  const change = (next: (before: readonly CacheEntry[]) => readonly CacheEntry[]) =>
    enqueue(async () => {
      const after = next(entries)
      await records.setItem(ENTRIES, JSON.stringify({ version: 1, entries: after }))
      entries = after
      byKey = mapKeys(after)
      onChange()
    })

  return {
    /** The entries come in the order in which they were added. */
    entries: () => entries,
    /** The entry is on disk before it resolves; one of the same name is replaced in its place. */
    saveEntry: (entry: CacheEntry) =>
      change((before) =>
        before.some(({ name }) => name === entry.name)
          ? before.map((one) => (one.name === entry.name ? entry : one))
          : [...before, entry],
      ),
    removeEntry: (name: string) =>
      change((before) => before.filter((entry) => entry.name !== name)),
    find: (key: string) => sources.get(key) ?? null,
    /** The entry whose bytes are kept under a key, or whose own source has it. */
    findEntry: (key: string) => byKey.get(key) ?? null,
    sources: (): ReadonlyMap<string, StoredSource> => sources,
    /** The change is on disk before anybody sees it. */
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

/** The first entry wins; where bytes are kept counts more than by what name they are known. */
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
