/** The digest of the index of an image in frames, read once all of the image is here. */
import { Fault } from '../../core/foundation/fault.ts'
import { readFrameMap } from '../image/frame-maps.ts'
import type { StoredSource } from './blob-index.ts'
import type { Blobs } from './blobs.ts'

/** Empty where the blob has no index, or one that is damaged: then it is read from start to end. */
export async function readIndexDigest(
  blobs: Pick<Blobs, 'peek'>,
  { sha256, sizeBytes }: Pick<StoredSource, 'sha256' | 'sizeBytes'>,
): Promise<Pick<StoredSource, 'indexSha256'>> {
  const handle = await blobs.peek(sha256)
  try {
    const readAt = async (into: Buffer, at: number) =>
      (await handle.read(into, 0, into.length, at)).bytesRead
    const map = await readFrameMap({ name: sha256, sizeBytes, readAt })
    const indexSha256 = map?.indexSha256 ?? null
    return indexSha256 === null ? {} : { indexSha256 }
  } catch (thrown) {
    if (thrown instanceof Fault) return {}
    throw thrown
  } finally {
    await handle.close()
  }
}
