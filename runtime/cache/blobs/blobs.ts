/** Stores complete image files by their digest, makes room for new ones, and remembers which image has which. */
import { constants } from 'node:fs'
import { type FileHandle, lstat, open, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault, isFull, isMissing } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { makeFolder, moveName, removeName } from '#kit/host/folders.ts'
import { createHash } from 'node:crypto'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import {
  blobKeyOf,
  type CacheEntry,
  type FileStamp,
  FileStampSchema,
  isSameStamp,
  keyOf,
  parseCatalogFields,
} from '#engine/catalog/rules/cache-entry.ts'
import { planEviction, type RoomRefusal } from '#cache/rules/eviction.ts'
import { selectRecords } from '#kit/host/records.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { createQueue } from '#kit/host/queue.ts'

export type Blobs = Awaited<ReturnType<typeof createBlobs>>

const SHA256 = /^[0-9a-f]{64}$/

export async function createBlobs(folder: string) {
  const whole = join(folder, 'blobs')
  await makeFolder(whole)
  const pathOf = (sha256: string) => join(whole, checked(sha256))

  return {
    /** The complete blobs; `usedAt` in milliseconds since the epoch. */
    async list() {
      const names = (await readdir(whole)).filter((name) => SHA256.test(name))
      return Promise.all(
        names.map(async (sha256) => {
          const { size, atimeMs } = await stat(pathOf(sha256))
          return { sha256, sizeBytes: size, usedAt: atimeMs }
        }),
      )
    },
    /** Throws a Fault `not-found`. */
    async open(sha256: string, usedAt: Date) {
      const handle = await openStored(pathOf(sha256))
      try {
        await handle.utimes(usedAt, (await handle.stat()).mtime)
        return handle
      } catch (thrown) {
        await handle.close()
        throw thrown
      }
    },
    /** For the cache itself: this is no use of the blob. */
    peek: (sha256: string) => openStored(pathOf(sha256), constants.O_NOATIME),
    remove: (sha256: string) => removeName(pathOf(sha256)),
    /** Moves a complete file into the store, durably and atomically. */
    async publish(
      path: string,
      handle: FileHandle,
      { sha256, usedAt }: { readonly sha256: string; readonly usedAt: Date },
    ) {
      await handle.chmod(0o644)
      await handle.utimes(usedAt, usedAt)
      await handle.sync()
      await moveName(path, pathOf(sha256))
    },
    async free() {
      const { bavail, bsize } = await statfs(whole)
      return bavail * bsize
    },
  }
}

/** Null: not the Fault of a full file system. Names no folder, as the catalog is open to all. */
export function describeFull(thrown: unknown, freeBytes: number): Fault | null {
  if (!isFull(thrown)) return null
  const words = `no space left on the disk of the cache (${renderSize(freeBytes)} free)`
  return new Fault('storage-full', words, {
    hint: 'Remove images, or give the cache a larger disk.',
    cause: thrown,
  })
}

/** Only digests become file names. */
function checked(name: string): string {
  if (SHA256.test(name)) return name
  throw new Fault('input-invalid', 'not a digest')
}

/** Follows no link. Rejects with a Fault `not-found`. */
export async function openStored(path: string, more = 0): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | more)
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw new Fault('not-found', 'the image is not in the cache', { cause })
  }
}

/** Null: no regular file (a link may lead out of the folder), empty, or gone. */
export async function readStamp(folder: string, name: string): Promise<FileStamp | null> {
  try {
    const file = await lstat(join(folder, name), { bigint: true })
    return file.isFile() && file.size > 0n ? stampOf(name, file) : null
  } catch {
    return null // Gone between the listing and the look.
  }
}

interface Stat {
  readonly size: bigint
  readonly mtimeNs: bigint
  readonly ino: bigint
}
const stampOf = (name: string, { size, mtimeNs, ino }: Stat): FileStamp => ({
  name,
  sizeBytes: Number(size),
  mtimeNs: String(mtimeNs),
  ino: String(ino),
})

const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Rejects with a Fault `not-found` where the file has changed. */
export async function openStamped(folder: string, stamp: FileStamp): Promise<FileHandle> {
  const handle = await open(join(folder, stamp.name), FLAGS).catch(() => null)
  if (handle !== null) {
    const found = await handle.stat({ bigint: true }).catch(() => null)
    if (found !== null && isSameStamp(stampOf(stamp.name, found), stamp)) return handle
    await handle.close()
  }
  throw new Fault('not-found', `${stamp.name} was changed or removed just now`)
}

export const isStill = async (stamp: FileStamp, handle: FileHandle): Promise<boolean> =>
  isSameStamp(stampOf(stamp.name, await handle.stat({ bigint: true })), stamp)

const stampKeyOf = (name: string) => createHash('sha256').update(name).digest('hex')

/** Hexadecimal, lower case. */
export interface FileDigests {
  readonly sha256: string
  /** The index with which all frames were compared; null: it has none. */
  readonly checkedIndex: string | null
}

const StoredSchema = FileStampSchema.extend({
  sha256: z.string(),
  checkedIndex: z.string().nullable(),
})

/** Unchanged files are not read again after a restart. */
export function createDigests(records: Storage) {
  const files = selectRecords(records, 'file', StoredSchema)
  return {
    async find(stamp: FileStamp): Promise<FileDigests | null> {
      const found = await files.read(stampKeyOf(stamp.name))
      if (found === null || !isSameStamp(found, stamp)) return null
      return { sha256: found.sha256, checkedIndex: found.checkedIndex }
    },
    save: (stamp: FileStamp, digests: FileDigests) =>
      files.write(stampKeyOf(stamp.name), { ...stamp, ...digests }),
  }
}

export type Growth = ReturnType<typeof createGrowth>

type GrowthState =
  | { readonly kind: 'growing' }
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly reason: unknown }

export function createGrowth() {
  const { promise: started, resolve, reject } = Promise.withResolvers<void>()
  started.catch(() => {}) // Nobody may be waiting.
  let state: GrowthState = { kind: 'growing' }
  let bytes = 0
  let total: number | null = null
  let change = Promise.withResolvers<void>()

  function wake() {
    const before = change
    change = Promise.withResolvers()
    before.resolve()
  }

  function end(next: GrowthState) {
    if (state.kind !== 'growing') return
    state = next
    wake()
  }

  /** The offset at which readers must wait for now. */
  function limit() {
    if (state.kind === 'complete' || total === null) return bytes
    return Math.min(bytes, total - 1)
  }

  return {
    get bytes() {
      return bytes
    },
    /** Null: unknown. */
    get total() {
      return total
    },
    /** Rejects where no byte will come. */
    started,
    start(from: number, whole: number | null) {
      bytes = from
      total = whole
      resolve()
    },
    add(count: number) {
      bytes += count
      wake()
    },
    complete() {
      end({ kind: 'complete' })
      resolve()
    },
    fail(reason: unknown) {
      end({ kind: 'failed', reason })
      reject(reason)
    },
    /**
     * Bytes readable from `offset`: waits for at least one, 0 at the end. The last byte is held
     * back until the file is verified, so that nobody has all of a wrong one. Throws the reason of
     * a failure.
     */
    async available(offset: number, signal: AbortSignal): Promise<number> {
      while (state.kind === 'growing' && offset >= limit())
        await untilAborted(signal, change.promise)
      if (state.kind === 'failed') throw state.reason
      return Math.max(0, limit() - offset)
    },
  }
}

export type Silences = Awaited<ReturnType<typeof createSilences>>

/** Milliseconds by name. */
const SilencesSchema = z.array(z.tuple([z.string(), z.number().min(0)])).catch([])

/** `elapsed`: monotonic milliseconds. Time in which the process does not run does not count. */
export async function createSilences(records: Storage, key: string, elapsed: () => number) {
  const started = elapsed()
  const before = new Map(SilencesSchema.parse(await records.getItem(key)))
  const heardAt = new Map<string, number>()

  const read = (name: string): number =>
    (before.get(name) ?? 0) + elapsed() - (heardAt.get(name) ?? started)

  return {
    read,
    end(name: string) {
      before.delete(name)
      heardAt.set(name, elapsed())
    },
    /** Forgets all others. Best effort: after a failure they take longer to expire. */
    async save(names: readonly string[]) {
      for (const known of [before, heardAt]) {
        for (const name of known.keys()) if (!names.includes(name)) known.delete(name)
      }
      const stored = names.map((name) => [name, Math.round(read(name))] as const)
      await records.setItem(key, JSON.stringify(stored)).catch(() => undefined)
    },
  }
}

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
  log.info(`removed ${sha256.slice(0, 12)}, the least recently used image, to free space`)
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
    { hint: 'Remove images, or set [cache] max_bytes to have old ones removed.' },
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
