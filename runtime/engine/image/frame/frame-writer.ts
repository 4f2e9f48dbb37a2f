/** Writes an image as independent frames with their index, compressed on all cores (docs/image-format.md). */
import { createHash, type Hash } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'
import {
  digestOfZeros,
  encodeFrameIndex,
  FRAME_BYTES,
  type IndexEntry,
  MAX_IMAGE_BYTES,
  MAX_STORED_BYTES,
  SKIPPABLE_HEAD_BYTES,
} from '../rules/frame-map.ts'
import { encodeSeekTable } from '../rules/zstd.ts'
import { createSharedSlot, type FrameWorkers } from './frame-workers.ts'
import { isAllZero } from '#engine/disk/rules/extents.ts'
import type { Source } from '../sources/source.ts'

interface FrameWriting {
  readonly reading: FrameReading
  /** The bytes may not change until it resolves. */
  readonly write: (bytes: Buffer) => Promise<void>
  readonly workers: FrameWorkers
  readonly level: number
  readonly signal: AbortSignal
  /** Image bytes of each frame that was written. */
  readonly onWritten: (bytes: number) => void
}

export interface WrittenFrames {
  readonly imageBytes: number
  readonly storedBytes: number
  readonly frames: number
  readonly zeroFrames: number
  /** Hexadecimal: of the image (null: not computed), of the index's body, of the whole file. */
  readonly imageSha256: string | null
  readonly indexSha256: string
  readonly sha256: string
}

interface WriteStation {
  readonly raw: SharedArrayBuffer
  readonly stored: SharedArrayBuffer
}

interface PendingFrame {
  readonly station: WriteStation
  readonly bytes: number
  readonly entry: Promise<IndexEntry>
}

/**
 * Compresses frames side by side, writes them in order, then their index. Rejects with a Fault
 * `too-large`, the failure of reading or writing, or the signal's reason.
 */
export async function writeFrames(writing: FrameWriting): Promise<WrittenFrames> {
  const { reading, workers, signal } = writing
  const free = Array.from({ length: workers.count + 3 }, createStation)
  const pending: PendingFrame[] = []
  const output = createOutput(writing)
  const encode = createEncoder(writing)
  const finishFirst = async () => {
    const first = pending.shift()
    if (first !== undefined) free.push(await output.add(first))
  }
  const read = () => {
    const station = free.pop() ?? createStation()
    const frame = reading.next(Buffer.from(station.raw))
    // Thrown when its turn comes.
    frame.catch(() => undefined)
    return { station, frame }
  }
  try {
    let next = read()
    for (let isOver = false; !isOver;) {
      signal.throwIfAborted()
      const { station } = next
      const frame = await next.frame
      const { bytes } = frame
      isOver = bytes < FRAME_BYTES
      if (bytes === 0) break
      if (!isOver) next = read()
      const entry = encode(station, frame)
      entry.catch(() => undefined)
      pending.push({ station, bytes, entry })
      if (free.length === 0) await finishFirst()
    }
    while (pending.length > 0) await finishFirst()
  } finally {
    await Promise.allSettled(pending.map(({ entry }) => entry))
  }
  return await output.end(reading.digest())
}

const createStation = (): WriteStation => ({
  raw: createSharedSlot(FRAME_BYTES),
  stored: createSharedSlot(MAX_STORED_BYTES),
})

/** A whole frame of zeros is compressed once. */
function createEncoder({ workers, level }: FrameWriting) {
  let zeroFrame: Promise<Buffer> | null = null
  async function run({ raw, stored }: WriteStation, bytes: number) {
    return workers.run({ does: 'encode', from: raw, bytes, into: stored, level })
  }
  async function encodeZeros(station: WriteStation, bytes: number): Promise<IndexEntry> {
    const compress = () => {
      Buffer.from(station.raw, 0, bytes).fill(0)
      return run(station, bytes)
    }
    const frame =
      bytes === FRAME_BYTES
        ? await (zeroFrame ??= compress().then(({ bytes: storedBytes }) =>
            Buffer.copyBytesFrom(new Uint8Array(station.stored), 0, storedBytes),
          ))
        : null
    frame?.copy(Buffer.from(station.stored))
    const storedBytes = frame?.length ?? (await compress()).bytes
    return { storedBytes, isZero: true, sha256: digestOfZeros(bytes) }
  }
  return async (station: WriteStation, { bytes, isZero }: ReadFrame): Promise<IndexEntry> => {
    if (isZero) return encodeZeros(station, bytes)
    const { bytes: storedBytes, sha256 } = await run(station, bytes)
    return { storedBytes, isZero: false, sha256: Buffer.from(sha256, 'hex') }
  }
}

function createOutput({ write, onWritten }: FrameWriting) {
  const file = createHash('sha256')
  const entries: IndexEntry[] = []
  const sizes = { image: 0, stored: 0 }
  async function put(bytes: Buffer) {
    file.update(bytes)
    sizes.stored += bytes.length
    await write(bytes)
  }
  return {
    /** The station is free again when this resolves. */
    async add({ station, bytes, entry: encoding }: PendingFrame): Promise<WriteStation> {
      const entry = await encoding
      checkSize(sizes.image + bytes)
      await put(Buffer.from(station.stored, 0, entry.storedBytes))
      entries.push(entry)
      sizes.image += bytes
      onWritten(bytes)
      return station
    },
    async end(imageSha256: Buffer | null): Promise<WrittenFrames> {
      const index = encodeFrameIndex({ imageBytes: sizes.image, imageSha256, entries })
      await put(index)
      await put(encodeSeekTable([...listSeekEntries(entries, sizes.image), endOf(index)]))
      return {
        imageBytes: sizes.image,
        storedBytes: sizes.stored,
        frames: entries.length,
        zeroFrames: entries.filter((entry) => entry.isZero).length,
        imageSha256: imageSha256?.toString('hex') ?? null,
        indexSha256: digestOfBody(index),
        sha256: file.digest('hex'),
      }
    },
  }
}

const listSeekEntries = (entries: readonly IndexEntry[], imageBytes: number) =>
  entries.map(({ storedBytes }, index) => ({
    storedBytes,
    contentBytes: Math.min(FRAME_BYTES, imageBytes - index * FRAME_BYTES),
  }))

/** The index is a frame of the file that holds nothing. */
const endOf = (index: Buffer) => ({ storedBytes: index.length, contentBytes: 0 })

const digestOfBody = (index: Buffer) =>
  createHash('sha256').update(index.subarray(SKIPPABLE_HEAD_BYTES)).digest('hex')

/** Throws a Fault `too-large`. */
export function checkSize(bytes: number): void {
  if (bytes <= MAX_IMAGE_BYTES) return
  throw new Fault('too-large', `the image holds more than ${MAX_IMAGE_BYTES / 2 ** 40} TiB`, {
    hint: 'Such an image can only be compressed with zstd itself.',
  })
}

// The frames of an image in order, each known to hold data or zeros, and the digest of all of them.

interface ReadFrame {
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
