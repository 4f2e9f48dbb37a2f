/** What the cache has been told to offer, and which blob holds each source: kept on disk, read from memory. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { blobKeyOf, type CacheEntry, keyOf } from '../../core/catalog/cache-entry.ts'
import { parseCatalogFields } from '../../core/catalog/catalog-fields.ts'

/** The bytes of one source. */
const StoredSource = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  sizeBytes: z.number(),
  /** ISO time. */
  fetchedAt: z.string(),
})
export type StoredSource = Readonly<z.infer<typeof StoredSource>>

const Entries = z.object({ entries: z.array(z.unknown()) })
const Credentials = z.object({ credentials: z.string() })

export interface BlobIndex {
  /** In the order in which they were added. */
  entries(): readonly CacheEntry[]
  /** On disk before it resolves; an entry of the same name is replaced in its place. */
  saveEntry(entry: CacheEntry): Promise<void>
  removeEntry(name: string): Promise<void>
  find(key: string): StoredSource | null
  /** The entry whose bytes are kept under a key, or whose own source has it. */
  findEntry(key: string): CacheEntry | null
  sources(): ReadonlyMap<string, StoredSource>
  /** On disk before anybody sees it. */
  store(key: string, source: StoredSource): Promise<void>
  /** Gone for everybody before it is gone from the disk. */
  forget(key: string): Promise<void>
}

const ENTRIES = 'entries'
const BLOB = 'blob:'

export async function createBlobIndex(records: Storage): Promise<BlobIndex> {
  let entries = parseEntries(await records.getItem(ENTRIES))
  const sources = await readSources(records)
  let byKey = mapKeys(entries)
  let saving: Promise<void> = Promise.resolve()

  /** One after the other, each from what the one before it made. */
  function change(next: (before: readonly CacheEntry[]) => readonly CacheEntry[]): Promise<void> {
    const work = saving.then(async () => {
      const after = next(entries)
      await records.setItem(ENTRIES, JSON.stringify({ version: 1, entries: after }))
      entries = after
      byKey = mapKeys(after)
    })
    saving = work.catch(() => {})
    return work
  }

  return {
    entries: () => entries,
    saveEntry: (entry) =>
      change((before) =>
        before.some(({ name }) => name === entry.name)
          ? before.map((one) => (one.name === entry.name ? entry : one))
          : [...before, entry],
      ),
    removeEntry: (name) => change((before) => before.filter((entry) => entry.name !== name)),
    find: (key) => sources.get(key) ?? null,
    findEntry: (key) => byKey.get(key) ?? null,
    sources: () => sources,
    async store(key, source) {
      await records.setItem(`${BLOB}${key}`, JSON.stringify(source))
      sources.set(key, source)
    },
    async forget(key) {
      sources.delete(key)
      await records.removeItem(`${BLOB}${key}`)
    },
  }
}

/** The first entry wins; where bytes are kept counts more than by what name they are known. */
function mapKeys(entries: readonly CacheEntry[]): ReadonlyMap<string, CacheEntry> {
  const bySource = entries.map((entry) => [blobKeyOf(entry.src) ?? '', entry] as const)
  const byBytes = entries.map((entry) => [keyOf(entry), entry] as const)
  return new Map([...bySource.toReversed(), ...byBytes.toReversed()])
}

function parseEntries(found: unknown): readonly CacheEntry[] {
  const list = Entries.safeParse(found).data?.entries ?? []
  return list.flatMap((one, index) => {
    const fields = parseCatalogFields(one, index)
    const credentials = Credentials.safeParse(one).data?.credentials ?? null
    return fields.ok ? [{ ...fields.value, credentials }] : []
  })
}

async function readSources(records: Storage): Promise<Map<string, StoredSource>> {
  const sources = new Map<string, StoredSource>()
  for (const key of (await records.getKeys()).filter((each) => each.startsWith(BLOB))) {
    const source = StoredSource.safeParse(await records.getItem(key))
    if (source.success) sources.set(key.slice(BLOB.length), source.data)
  }
  return sources
}
