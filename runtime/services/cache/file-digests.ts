/** Digests of files: read once, and remembered as long as the file stays the same. */
import { createHash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import type { Storage } from 'unstorage'
import { isRecord } from '../../core/foundation/shape.ts'
import type { FileStamp } from '../../core/catalog/dropped-file.ts'

const CHUNK_BYTES = 1024 * 1024

/** Null: it was ended. */
export async function hashFile(
  handle: FileHandle,
  signal: AbortSignal,
  tell: (bytes: number) => void,
) {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  for (let at = 0; ;) {
    if (signal.aborted) return null
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, at)
    if (bytesRead === 0) return hash.digest('hex')
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
    tell(at)
  }
}

const keyOf = (name: string) => `file:${createHash('sha256').update(name).digest('hex')}`

/** Digests of files that have not changed since, so that a restart reads none of them again. */
export function createDigests(records: Storage) {
  return {
    async find(stamp: FileStamp): Promise<string | null> {
      const found = await records.getItem(keyOf(stamp.name))
      if (!isRecord(found)) return null
      const { sha256 } = found
      const isSame =
        JSON.stringify({ ...found, sha256: '' }) === JSON.stringify({ ...stamp, sha256: '' })
      return isSame && typeof sha256 === 'string' ? sha256 : null
    },
    save: (stamp: FileStamp, sha256: string) =>
      records.setItem(keyOf(stamp.name), JSON.stringify({ ...stamp, sha256 })),
  }
}
