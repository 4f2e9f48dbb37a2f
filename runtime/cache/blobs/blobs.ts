/** Stores image files by their digest, and the partial files of unfinished downloads. */
import { constants } from 'node:fs'
import { type FileHandle, open, readdir, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { Fault } from '../../kit/foundation/fault.ts'
import { renderSize } from '../../kit/foundation/size.ts'
import { isFull, isMissing } from '../../kit/foundation/system-error.ts'
import { makeFolder, moveName, removeName } from '../../kit/host/folders.ts'

export type Blobs = Awaited<ReturnType<typeof createBlobs>>

/** What is remembered of an unfinished download, so that the next start can resume it. */
export const PartNoteSchema = z.object({
  /** The version that the source named; null: it named none, and the part is worth nothing. */
  version: z.string().nullable().catch(null),
  sizeBytes: z.number().nullable().catch(null),
  /** This many bytes are certainly on the disk. */
  durableBytes: z.int().min(0),
  /** The run of the kernel in which the rest was written. */
  bootId: z.string().nullable().catch(null),
  /** All of it is here, and has this digest; null: not yet. */
  sha256: z.string().nullable().catch(null),
  /** Whether it is to go on by itself after a restart. */
  isWanted: z.boolean().catch(false),
})

export type PartNote = Readonly<z.infer<typeof PartNoteSchema>>

const SHA256 = /^[0-9a-f]{64}$/
const PART = /^([0-9a-f]{64})\.part$/

export async function createBlobs(folder: string) {
  const whole = join(folder, 'blobs')
  const parts = join(folder, 'parts')
  await makeFolder(whole)
  await makeFolder(parts, 0o700)
  const pathOf = (sha256: string) => join(whole, checked(sha256))
  const partOf = (key: string) => join(parts, `${checked(key)}.part`)

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
    /** Opens a blob for reading, and notes the use. Throws a Fault `not-found` if there is none. */
    async open(sha256: string, usedAt: Date) {
      const handle = await openExisting(pathOf(sha256))
      try {
        await handle.utimes(usedAt, (await handle.stat()).mtime)
        return handle
      } catch (thrown) {
        await handle.close()
        throw thrown
      }
    },
    /** One that was just published, to be read by the cache itself: that is no use of it. */
    peek: (sha256: string) => openExisting(pathOf(sha256), constants.O_NOATIME),
    remove: (sha256: string) => removeName(pathOf(sha256)),
    /** The part that has come so far, made where there is none; for reading and appending. */
    openPart: (key: string) => open(partOf(key), 'a+', 0o600),
    /** The same, for reading what another writes. */
    readPart: (key: string) => openExisting(partOf(key)),
    removePart: (key: string) => removeName(partOf(key)),
    async listParts() {
      return (await readdir(parts)).flatMap((name) => PART.exec(name)?.[1] ?? [])
    },
    /** A complete part becomes the blob of this digest, durably, all at once. */
    async publish(
      key: string,
      handle: FileHandle,
      { sha256, usedAt }: { readonly sha256: string; readonly usedAt: Date },
    ) {
      await handle.chmod(0o644)
      await handle.utimes(usedAt, usedAt)
      await handle.sync()
      await moveName(partOf(key), pathOf(sha256))
    },
    /** Bytes that the file system can still take. */
    async free() {
      const { bavail, bsize } = await statfs(whole)
      return bavail * bsize
    },
  }
}

/**
 * What the file system says when it is full, with the hint; null for anything else. It names no
 * folder: the catalog, which is open to all, says why a download failed.
 */
export function describeFull(thrown: unknown, freeBytes: number): Fault | null {
  if (!isFull(thrown)) return null
  const words = `no space left on the disk of the cache (${renderSize(freeBytes)} free)`
  return new Fault('storage-full', words, {
    hint: 'Remove images, or give the cache a larger disk.',
    cause: thrown,
  })
}

/** Digests and keys alone become file names. */
function checked(name: string): string {
  if (SHA256.test(name)) return name
  throw new Fault('input-invalid', 'not a digest')
}

async function openExisting(path: string, more = 0): Promise<FileHandle> {
  try {
    return await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | more)
  } catch (cause) {
    if (!isMissing(cause)) throw cause
    throw new Fault('not-found', 'the image is not in the cache', { cause })
  }
}
