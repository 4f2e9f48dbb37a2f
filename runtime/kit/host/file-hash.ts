/** Computes the digest of the beginning of an open file. */
import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { Fault } from '../foundation/fault.ts'

const CHUNK_BYTES = 1024 * 1024

/** The SHA-256 state after the first `bytes`, to be continued or ended; `onBytes` hears how many are done. */
export async function hashStart(
  handle: FileHandle,
  bytes: number,
  signal: AbortSignal,
  onBytes?: (done: number) => void,
): Promise<Hash> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, bytes))
  for (let at = 0; at < bytes;) {
    signal.throwIfAborted()
    const { bytesRead } = await handle.read(buffer, 0, Math.min(buffer.length, bytes - at), at)
    if (bytesRead === 0)
      throw new Fault('source-broken', 'the file became shorter while it was read')
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
    onBytes?.(at)
  }
  return hash
}
