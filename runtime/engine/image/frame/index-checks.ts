/** Decodes each image in frames once, before the cache vouches for its index. */
import type { FileHandle } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { checkFrames } from './frame-check.ts'
import { createQueue } from '#kit/host/queue.ts'
import { readFrameMap } from '../frame-maps.ts'

interface IndexOrder {
  readonly name: string
  readonly sizeBytes: number
  readonly signal: AbortSignal
  /** 0 to 1. */
  readonly onProgress?: (part: number) => void
}

type RecallOrder = Pick<IndexOrder, 'name' | 'sizeBytes'> & { readonly checkedIndex: string }

export interface DecodedImage {
  readonly sizeBytes: number
  /** Lower case; null: its index does not have it. */
  readonly sha256: string | null
}

export interface DecodedMemory {
  find(indexSha256: string): DecodedImage | null
  remember(indexSha256: string, image: DecodedImage): void
}

export type IndexChecks = ReturnType<typeof createIndexChecks>

/** Two, so that a small image need not wait for a large one. */
const AT_ONCE = 2
/** For each image: serving images goes on meanwhile. */
const THREADS = Math.max(1, Math.min(2, availableParallelism() - 1))

export function createIndexChecks(decoded: DecodedMemory) {
  const enqueue = createQueue(AT_ONCE)

  return {
    /**
     * The digest of its index; null: none. A Fault `image-broken` where the index contradicts
     * itself, the frames or the image.
     */
    async check(handle: FileHandle, order: IndexOrder): Promise<string | null> {
      const { name, sizeBytes, signal, onProgress } = order
      const readAt = readerOf(handle)
      const map = await readFrameMap({ name, sizeBytes, readAt })
      if (map === null || map.indexSha256 === null) return null
      const onChecked = (bytes: number) => onProgress?.(bytes / map.bytes)
      const source = { name, readAt }
      await enqueue(() => checkFrames({ map, source, signal, onChecked, threads: THREADS }))
      decoded.remember(map.indexSha256, { sizeBytes: map.bytes, sha256: map.sha256 })
      return map.indexSha256
    },
    /**
     * Reads the index of a compared image whose record was lost, and decodes nothing. A Fault
     * `image-broken` where the index contradicts itself.
     */
    async recall(
      handle: FileHandle,
      { checkedIndex, name, sizeBytes }: RecallOrder,
    ): Promise<void> {
      if (decoded.find(checkedIndex) !== null) return
      const map = await readFrameMap({ name, sizeBytes, readAt: readerOf(handle) })
      if (map?.indexSha256 !== checkedIndex) return
      decoded.remember(map.indexSha256, { sizeBytes: map.bytes, sha256: map.sha256 })
    },
  }
}

const readerOf = (handle: FileHandle) => async (into: Buffer, at: number) =>
  (await handle.read(into, 0, into.length, at)).bytesRead
