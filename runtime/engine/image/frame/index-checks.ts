/** Decodes each image in frames once, before the cache vouches for its index. */
import type { FileHandle } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { checkFrames } from './frame-check.ts'
import { createQueue } from '../../../kit/host/queue.ts'
import { readFrameMap } from '../frame-maps.ts'

interface IndexOrder {
  /** What to call it in a message. */
  readonly name: string
  readonly sizeBytes: number
  readonly signal: AbortSignal
  /** Called with the part that is done, 0 to 1. */
  readonly onProgress?: (part: number) => void
}

export type IndexChecks = ReturnType<typeof createIndexChecks>

/** Images at once: a small one need not wait for a large one. */
const AT_ONCE = 2
/** Threads for each: serving images goes on meanwhile. */
const THREADS = Math.max(1, Math.min(2, availableParallelism() - 1))

/** Creates the checks of a cache's images; only a few run at once, the others wait for their turn. */
export function createIndexChecks() {
  const enqueue = createQueue(AT_ONCE)

  return {
    /**
     * The digest of its index; null: it has none. A Fault `image-broken` where the index contradicts
     * itself, the frames or the image.
     */
    async check(handle: FileHandle, order: IndexOrder): Promise<string | null> {
      const { name, sizeBytes, signal, onProgress } = order
      const readAt = async (into: Buffer, at: number) =>
        (await handle.read(into, 0, into.length, at)).bytesRead
      const map = await readFrameMap({ name, sizeBytes, readAt })
      if (map === null || map.indexSha256 === null) return null
      const onChecked = (bytes: number) => onProgress?.(bytes / map.bytes)
      const source = { name, readAt }
      await enqueue(() => checkFrames({ map, source, signal, onChecked, threads: THREADS }))
      return map.indexSha256
    },
  }
}
