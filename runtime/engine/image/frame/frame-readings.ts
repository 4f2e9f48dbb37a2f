/** The frames of an image in order, each known to hold data or zeros, and the digest of all of them. */
import { createHash, type Hash } from 'node:crypto'
import { isAllZero } from '../../disk/rules/extents.ts'
import { FRAME_BYTES } from '../rules/frame-index.ts'
import type { Source } from '../sources/source.ts'

export interface ReadFrame {
  /**
   * The bytes that were read, as many as a frame holds; fewer only at the image's end, 0 behind it.
   */
  readonly bytes: number
  /** Its bytes are zeros, and need not be in the buffer. */
  readonly isZero: boolean
}

export interface FrameReading {
  next(into: Buffer): Promise<ReadFrame>
  /** SHA-256 of the image; asked for once, when all of it was read. Null: it was not computed. */
  digest(): Buffer | null
}

interface Once {
  /** Fills the buffer from the image's next bytes; fewer than its length only at the image's end. */
  readonly fill: (into: Buffer) => Promise<number>
  /** Skips the image's next bytes where so many are known to be zeros; absent: none ever are. */
  readonly skipZeros?: (bytes: number) => boolean
  /** Absent: the image's digest is computed. */
  readonly hashes?: boolean
}

/** It is hashed as it comes, unless `hashes` is false. */
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

/** Divides a frame. */
const ZEROS = Buffer.alloc(64 * 1024)

function addZeros(image: Hash, bytes: number) {
  for (let at = 0; at < bytes; at += ZEROS.length) image.update(ZEROS)
}

/** How many frames of data are hashed ahead: 256 MiB, which are still in the page cache when they are read again. */
const MAX_DATA_AHEAD = 64
/** With the frames of zeros, which are not read again. */
const MAX_AHEAD = 8192

/**
 * Creates a reading of a file, which can be read twice. Its digest takes the bytes in order, on one
 * processor: that reading runs ahead of the frames, so that the zeros at the image's end are hashed
 * while data is still being compressed. As at every read, a file whose size or time of change
 * differs is a Fault.
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
  // Its failure is thrown when the frames before it were read.
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
    /** The bytes of the image that the frames have read. */
    bytesRead: () => offset,
    digest: () => image.digest(),
    async [Symbol.asyncDispose]() {
      queue.close()
      await Promise.allSettled([hashing])
    },
  } satisfies FrameReading & AsyncDisposable & { bytesRead: () => number }
}

/** The frames that were hashed and not yet read again. */
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
    /** Nothing more is put in; what is there can still be taken. */
    close() {
      state.isClosed = true
      move()
    },
    /** Resolves when there is room for another one. */
    async put(frame: ReadFrame) {
      frames.push(frame)
      if (!frame.isZero) state.data += 1
      move()
      while (isFull()) await state.moved.promise
    },
    /** The next one, when it is there; null: there are no more. */
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
