/** The frames of an image in order, each known to hold data or zeros, and the digest of all of them. */
import { createHash, type Hash } from 'node:crypto'
import { isAllZero } from '#engine/disk/rules/extents.ts'
import { FRAME_BYTES } from '../rules/frame-index.ts'
import type { Source } from '../sources/source.ts'

export interface ReadFrame {
  /** Fewer than a frame holds only at the image's end, 0 behind it. */
  readonly bytes: number
  /** Zeros need not be in the buffer. */
  readonly isZero: boolean
}

export interface FrameReading {
  next(into: Buffer): Promise<ReadFrame>
  /** Call it once, when all was read. Null: not computed. */
  digest(): Buffer | null
}

interface Once {
  /** Fewer bytes than its length only at the image's end. */
  readonly fill: (into: Buffer) => Promise<number>
  /** Skips bytes only where all are known to be zeros. */
  readonly skipZeros?: (bytes: number) => boolean
  readonly hashes?: boolean
}

/** Hashes as it reads, unless `hashes` is false. */
export function readOnce({ fill, skipZeros = () => false, hashes = true }: Once): FrameReading {
  const image = hashes ? createHash('sha256') : null
  return {
    async next(into) {
      if (skipZeros(into.length)) {
        if (image !== null) addZeros(image, into.length)
        return { bytes: into.length, isZero: true }
      }
      const bytes = await fill(into)
      const content = into.subarray(0, bytes)
      image?.update(content)
      return { bytes, isZero: isAllZero(content) }
    },
    digest: () => image?.digest() ?? null,
  }
}

const ZEROS = Buffer.alloc(64 * 1024)

function addZeros(image: Hash, bytes: number) {
  for (let at = 0; at < bytes; at += ZEROS.length) image.update(ZEROS)
}

/** Frames of data hashed ahead: 256 MiB, still in the page cache at the second read. */
const MAX_DATA_AHEAD = 64
const MAX_AHEAD = 8192

/**
 * For a file, which can be read twice: hashing uses one processor and runs ahead, so that zeros at
 * the image's end are hashed while data is compressed. A changed size or time is a Fault.
 */
export function readTwice(source: Source & { readonly readAt: NonNullable<Source['readAt']> }) {
  const image = createHash('sha256')
  const queue = createQueue()

  async function hashAhead() {
    let bytes = 0
    let isZero = true
    for await (const chunk of source.stream()) {
      for (let at = 0; at < chunk.length;) {
        const part = chunk.subarray(at, at + FRAME_BYTES - bytes)
        image.update(part)
        isZero &&= isAllZero(part)
        bytes += part.length
        at += part.length
        if (bytes < FRAME_BYTES) continue
        await queue.put({ bytes, isZero })
        if (queue.isClosed()) return
        bytes = 0
        isZero = true
      }
    }
    if (bytes > 0) await queue.put({ bytes, isZero })
  }

  const hashing = hashAhead().finally(queue.close)
  // Thrown when the frames before it were read.
  hashing.catch(() => undefined)

  let offset = 0
  return {
    async next(into) {
      const frame = await queue.take()
      if (frame === null) {
        await hashing
        return { bytes: 0, isZero: true }
      }
      const at = offset
      offset += frame.bytes
      if (!frame.isZero) await source.readAt(into.subarray(0, frame.bytes), at)
      return frame
    },
    bytesRead: () => offset,
    digest: () => image.digest(),
    async [Symbol.asyncDispose]() {
      queue.close()
      await Promise.allSettled([hashing])
    },
  } satisfies FrameReading & AsyncDisposable & { bytesRead: () => number }
}

function createQueue() {
  const frames: ReadFrame[] = []
  const state = { data: 0, isClosed: false, moved: Promise.withResolvers<void>() }
  function move() {
    state.moved.resolve()
    state.moved = Promise.withResolvers()
  }
  const isFull = () =>
    !state.isClosed && (state.data >= MAX_DATA_AHEAD || frames.length >= MAX_AHEAD)
  const isEmpty = () => !state.isClosed && frames.length === 0
  return {
    isClosed: () => state.isClosed,
    close() {
      state.isClosed = true
      move()
    },
    async put(frame: ReadFrame) {
      frames.push(frame)
      if (!frame.isZero) state.data += 1
      move()
      while (isFull()) await state.moved.promise
    },
    /** Null: there are no more. */
    async take(): Promise<ReadFrame | null> {
      while (isEmpty()) await state.moved.promise
      const frame = frames.shift()
      if (frame === undefined) return null
      if (!frame.isZero) state.data -= 1
      move()
      return frame
    },
  }
}
