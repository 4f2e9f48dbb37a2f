/** Decodes an image in frames once, in threads, to see that each frame and the whole are what its index says. */
import type { Frame, FrameMap } from '../rules/frame-map.ts'
import { damaged } from '../stream-blocks.ts'
import { createFrameLoader, type FrameFile } from './frame-blocks.ts'
import { createFrameWorkers, createSharedSlot } from './frame-workers.ts'
import type { FileHandle } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { createQueue } from '#kit/host/queue.ts'
import { readFrameMap } from '../zstd-decoder.ts'

interface CheckStation {
  readonly stored: SharedArrayBuffer
  readonly content: SharedArrayBuffer
}

interface PendingCheck {
  readonly frame: Frame
  readonly station: CheckStation
  /** Zeros where it is not in the station. */
  readonly content: Promise<SharedArrayBuffer>
}

/** A Fault `image-broken` names the first frame that differs. */
export async function checkFrames(check: {
  readonly map: FrameMap
  readonly source: FrameFile
  readonly signal: AbortSignal
  readonly onChecked: (bytes: number) => void
  /** For decoding; the image's own digest takes one more. */
  readonly threads: number
}): Promise<void> {
  const { map, source, signal, onChecked, threads } = check
  await using workers = createFrameWorkers(threads)
  await using summing = createFrameWorkers(hasDigest(map) ? 1 : 0)
  const { load } = createZeroMemory(map, source, createFrameLoader([source], workers).load)
  const free = Array.from({ length: threads + 2 }, () => createStation(map))
  const pending: PendingCheck[] = []

  async function finishFirst() {
    const first = pending.shift()
    if (first === undefined) return
    const { frame, station } = first
    const from = await first.content
    if (hasDigest(map)) await summing.run({ does: 'sum', from, bytes: frame.bytes })
    free.push(station)
    onChecked(frame.offset + frame.bytes)
  }

  try {
    for (let index = 0; index < map.count; index += 1) {
      signal.throwIfAborted()
      if (free.length === 0) await finishFirst()
      const station = free.pop()
      if (station === undefined) throw new Error('no frame was given back')
      const frame = map.at(index)
      const content = load(frame, station)
      // Thrown when its turn comes.
      content.catch(() => undefined)
      pending.push({ frame, station, content })
    }
    while (pending.length > 0) await finishFirst()
    if (!hasDigest(map)) return
    const { sha256 } = await summing.run({ does: 'sum', from: createSharedSlot(1), bytes: 0 })
    if (sha256 !== map.sha256) throw damaged(source, 'it does not match its index')
  } finally {
    await Promise.allSettled(pending.map(({ content }) => content))
  }
}

/** All zeros: the image was too large to hash. */
const hasDigest = ({ sha256 }: FrameMap): boolean => sha256 !== null && !/^0*$/.test(sha256)

const createStation = ({ maxBytes, maxStoredBytes }: FrameMap): CheckStation => ({
  stored: createSharedSlot(Math.max(1, maxStoredBytes)),
  content: createSharedSlot(Math.max(1, maxBytes)),
})

/**
 * Most frames of zeros are stored as the same few bytes, which are decoded once: a thin image of a
 * large disk takes no longer than its data.
 */
function createZeroMemory(
  map: FrameMap,
  source: FrameFile,
  decode: (frame: Frame, stored: SharedArrayBuffer, into: SharedArrayBuffer) => Promise<void>,
) {
  const zeros = createSharedSlot(Math.max(1, map.maxBytes))
  let known: { readonly bytes: number; readonly stored: Buffer } | null = null

  async function isKnown({ bytes, storedAt, storedBytes }: Frame): Promise<boolean> {
    if (known?.bytes !== bytes || known.stored.length !== storedBytes) return false
    const stored = Buffer.alloc(storedBytes)
    return (await source.readAt(stored, storedAt)) === storedBytes && stored.equals(known.stored)
  }

  return {
    async load(frame: Frame, { stored, content }: CheckStation): Promise<SharedArrayBuffer> {
      if (frame.isZero && (await isKnown(frame))) return zeros
      await decode(frame, stored, content)
      if (frame.isZero) {
        known = {
          bytes: frame.bytes,
          stored: Buffer.from(Buffer.from(stored, 0, frame.storedBytes)),
        }
      }
      return content
    },
  }
}

// Decodes each image in frames once, before the cache vouches for its index.

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
