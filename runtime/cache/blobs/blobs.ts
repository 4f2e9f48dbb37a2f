/** Stores complete image files by their digest. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { isFull, isMissing } from '#kit/foundation/system-error.ts'
import { makeFolder, moveName, removeName } from '#kit/host/folders.ts'

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
