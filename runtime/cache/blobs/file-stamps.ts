/** Identifies the version of a file in a folder, opens exactly that version, and remembers its digest. */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { FileStampSchema, isSameStamp, type FileStamp } from '#engine/catalog/rules/dropped-file.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { selectRecords } from '#kit/host/records.ts'

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
