/** Makes room for downloads: counts stored and reserved bytes, and removes the least recently used images. */
import {
  planEviction,
  type RoomRefusal,
  blobKeyOf,
  type CacheEntry,
  keyOf,
  parseCatalogFields,
} from '#engine/catalog/rules/cache-entry.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { Blobs } from './blobs.ts'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { createQueue } from '#kit/host/queue.ts'
import { selectRecords } from '#kit/host/records.ts'

export interface CacheSpace {
  readonly storedBytes: number
  /** 0: no limit. */
  readonly maxBytes: number
  readonly freeBytes: number
}

export type BlobRoom = ReturnType<typeof createBlobRoom>

interface BlobRoomDependencies {
  readonly blobs: Blobs
  readonly index: BlobIndex
  /** Milliseconds since the epoch, the least recently used first: see rememberUse. */
  readonly used: Map<string, number>
  maxBytes(): number
  isBound(sha256: string): boolean
  writtenBytes(key: string): number
  readonly log: { info(message: string): void }
}

/** Keeps the map in order of use without relying on a clock that may be set. */
export function rememberUse(used: Map<string, number>, sha256: string, at: Date): void {
  used.delete(sha256)
  used.set(sha256, at.getTime())
}

/** Left for everything else on the same disk. */
const MARGIN_BYTES = 64 * 1024 * 1024

export function createBlobRoom(parts: BlobRoomDependencies) {
  const { blobs, index, used } = parts
  const promised = new Map<string, number>()
  const holds = createHolds()
  const expected = new Map<string, () => number>()

  const stored = () =>
    new Map([...index.sources().values()].map(({ sha256, sizeBytes }) => [sha256, sizeBytes]))
  const storedBytes = () => sum(stored().values())
  const writtenBytes = () => sum([...promised.keys()].map(parts.writtenBytes))

  const readFree = async () =>
    (await blobs.free()) - sum([...expected.values()].map((read) => read()))

  /** Throws a Fault `storage-full`; what is promised counts until it is released. */
  async function make(key: string, bytes: number) {
    const freeBytes = await readFree()
    promised.delete(key)
    const others = sum(promised.values())
    // A full disk counts as the limit only where we may remove something.
    const written = writtenBytes() + parts.writtenBytes(key)
    const onDisk = storedBytes() + written + Math.max(0, freeBytes - MARGIN_BYTES)
    const maxBytes = parts.maxBytes() === 0 ? 0 : Math.min(parts.maxBytes(), onDisk)
    const turns = new Map([...used.keys()].map((sha256, turn) => [sha256, turn]))
    const plan = planEviction({
      blobs: [...stored()].map(([sha256, sizeBytes]) => ({
        sha256,
        sizeBytes,
        usedAt: turns.get(sha256) ?? -1,
        isNeeded: holds.has(sha256) || parts.isBound(sha256),
      })),
      promisedBytes: others,
      neededBytes: bytes,
      maxBytes,
    })
    if (!plan.ok) throw full(plan.refusal)
    if (maxBytes === 0 && others + bytes > onDisk - storedBytes()) throw diskFull(bytes, freeBytes)
    promised.set(key, bytes)
    for (const sha256 of plan.value) await evict(parts, sha256)
  }

  return {
    make,
    /** Removes nothing to make room. Throws a Fault `storage-full`. */
    async reserve(key: string, remaining: () => number) {
      expected.set(key, remaining)
      const unwritten = Math.max(0, sum(promised.values()) - writtenBytes())
      if ((await readFree()) - unwritten >= MARGIN_BYTES) return
      expected.delete(key)
      throw diskFull(remaining(), Math.max(0, (await readFree()) - unwritten - MARGIN_BYTES))
    },
    release(key: string) {
      promised.delete(key)
      expected.delete(key)
    },
    hold: holds.hold,
    async space(): Promise<CacheSpace> {
      return {
        storedBytes: storedBytes(),
        maxBytes: parts.maxBytes(),
        freeBytes: await blobs.free(),
      }
    },
    async sweep(sha256: string) {
      if (stored().has(sha256)) return
      await blobs.remove(sha256)
      used.delete(sha256)
    },
  }
}

function createHolds() {
  const held = new Map<string, number>()
  return {
    has: (sha256: string) => held.has(sha256),
    /** Until what is returned is disposed. */
    hold(sha256: string): Disposable {
      held.set(sha256, (held.get(sha256) ?? 0) + 1)
      return {
        [Symbol.dispose]() {
          const left = (held.get(sha256) ?? 1) - 1
          if (left === 0) held.delete(sha256)
          else held.set(sha256, left)
        },
      }
    },
  }
}

async function evict({ blobs, index, used, log }: BlobRoomDependencies, sha256: string) {
  const keys = [...index.sources()].filter(([, source]) => source.sha256 === sha256)
  for (const [key] of keys) await index.forget(key)
  await blobs.remove(sha256)
  used.delete(sha256)
  log.info(`removed ${sha256.slice(0, 12)}, the image not used for longest, to make room`)
}

const sum = (numbers: Iterable<number>) => Iterator.from(numbers).reduce((a, b) => a + b, 0)

function full(refusal: RoomRefusal): Fault {
  if (refusal.why === 'larger-than-the-cache') {
    const { needed, max } = refusal
    const words = `the image (${renderSize(needed)}) is larger than the cache may be (${renderSize(max)})`
    return new Fault('storage-full', words, { hint: 'Raise [cache] max_bytes, or free its disk.' })
  }
  const { needed, free } = refusal
  return new Fault(
    'storage-full',
    `the cache is full: ${renderSize(needed)} needed, ${renderSize(free)} free, and all images are in use`,
    { hint: 'Remove images, or raise [cache] max_bytes.' },
  )
}

const diskFull = (needed: number, free: number) =>
  new Fault(
    'storage-full',
    `no space left on the disk of the cache: ${renderSize(needed)} needed, ${renderSize(free)} free`,
    { hint: 'Remove images, or set [cache] max_bytes and the oldest go by themselves.' },
  )

// The images that the cache offers, and the blob of each source: stored on disk, read from memory.

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
