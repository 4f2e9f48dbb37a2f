/** The digest of the index of an image in frames, read once all of the image is here. */
import type { FileHandle } from 'node:fs/promises'
import { Fault } from '../../core/foundation/fault.ts'
import { readFrameMap } from '../image/frame-maps.ts'

/** Null where the file has no index, or one that is damaged: then it is read from start to end. */
export async function readIndexDigest(
  handle: FileHandle,
  { name, sizeBytes }: { readonly name: string; readonly sizeBytes: number },
): Promise<string | null> {
  try {
    const readAt = async (into: Buffer, at: number) =>
      (await handle.read(into, 0, into.length, at)).bytesRead
    const map = await readFrameMap({ name, sizeBytes, readAt })
    return map?.indexSha256 ?? null
  } catch (thrown) {
    if (thrown instanceof Fault) return null
    throw thrown
  }
}
