/** Stores complete image files by their digest. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, stat, statfs, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { isFull, isMissing } from '#kit/foundation/system-error.ts'
import { makeFolder, moveName, removeName } from '#kit/host/folders.ts'
import { createHash } from 'node:crypto'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { type FileStamp, FileStampSchema, isSameStamp } from '#engine/catalog/rules/cache-entry.ts'
import { selectRecords } from '#kit/host/records.ts'
import { untilAborted } from '#kit/host/watch.ts'

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

// Identifies the version of a file in a folder, opens exactly that version, and remembers its digest.

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

const keyOf = (name: string) => createHash('sha256').update(name).digest('hex')

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
      const found = await files.read(keyOf(stamp.name))
      if (found === null || !isSameStamp(found, stamp)) return null
      return { sha256: found.sha256, checkedIndex: found.checkedIndex }
    },
    save: (stamp: FileStamp, digests: FileDigests) =>
      files.write(keyOf(stamp.name), { ...stamp, ...digests }),
  }
}

// Tracks how far a growing file has come, and waits for more of it.

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
