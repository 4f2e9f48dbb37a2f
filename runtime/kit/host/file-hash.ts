/** Computes the digest of the beginning of an open file. */
import { createHash, type Hash } from 'node:crypto'
import type { FileHandle } from 'node:fs/promises'
import { Fault } from '#kit/foundation/fault.ts'

const CHUNK_BYTES = 1024 * 1024

/**
 * Computes SHA-256 of the first `bytes` bytes and returns its state, to be continued or ended;
 * `onBytes` hears how many are done. Rejects with a Fault `source-broken` where the file has fewer,
 * or with the signal's reason.
 */
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
