/** Compares the frames of a zstd image that is read from start to end with the index at its end. */
import { isAllZero } from '#engine/disk/rules/extents.ts'
import { digestOfZeros, FRAME_BYTES } from './rules/frame-index.ts'
import type { FrameMap } from './rules/frame-map.ts'
import type { Span } from './rules/zstd-walker.ts'

interface FoundFrame {
  storedBytes: number
  /** An index can describe it; then its content is hashed. */
  readonly isLikely: boolean
  content: { readonly bytes: number; readonly sha256: string } | null
}

export type IndexCheck = ReturnType<typeof createIndexCheck>

export function createIndexCheck() {
  const frames: FoundFrame[] = []
  const tail = createTail()
  /** Only the last frame holds less than a whole frame. */
  let canGoOn = true

  function begin(contentBytes: number | null) {
    const isLikely = canGoOn && contentBytes !== null && contentBytes <= FRAME_BYTES
    canGoOn = isLikely && contentBytes === FRAME_BYTES
    frames.push({ storedBytes: 0, isLikely, content: null })
  }

  return {
    see(chunk: Buffer, spans: readonly Span[]) {
      for (const span of spans) {
        if (span.kind === 'frame-start') begin(span.contentBytes)
        const last = frames.at(-1)
        if (span.kind === 'data' && last !== undefined) last.storedBytes += span.bytes.length
      }
      tail.push(chunk, frames.length)
    },
    async take(index: number, content: Buffer<ArrayBuffer>): Promise<void> {
      const frame = frames[index]
      if (frame?.isLikely !== true) return
      frame.content = { bytes: content.length, sha256: await hashContent(content) }
    },
    toFile: tail.toFile,
    /** The first frame that the index does not describe; null: none. */
    findWrong: (map: FrameMap): number | null => findWrongFrame(map, frames),
  }
}

function findWrongFrame(map: FrameMap, frames: readonly FoundFrame[]): number | null {
  for (let index = 0; index < Math.max(map.count, frames.length); index += 1) {
    const found = frames[index]
    if (found === undefined || index >= map.count) return index
    const { storedBytes, bytes, sha256 } = map.at(index)
    const isRight =
      found.storedBytes === storedBytes &&
      found.content?.bytes === bytes &&
      found.content.sha256 === sha256
    if (!isRight) return index
  }
  return null
}

/** Not on this thread: hashing takes as long as decoding. */
async function hashContent(content: Buffer<ArrayBuffer>): Promise<string> {
  if (isAllZero(content)) return digestOfZeros(content.length).toString('hex')
  return Buffer.from(await crypto.subtle.digest('SHA-256', content)).toString('hex')
}

/** 40 bytes of the index, 12 of the seek table. */
const TABLE_BYTES_PER_FRAME = 52
const TABLE_BYTES = 256

/** As many bytes as the tables of the frames can take. */
function createTail() {
  const parts: Buffer[] = []
  let kept = 0
  let sizeBytes = 0
  return {
    push(chunk: Buffer, frames: number) {
      const wanted = TABLE_BYTES + TABLE_BYTES_PER_FRAME * frames
      // The source may reuse the chunk's memory.
      parts.push(Buffer.from(chunk.subarray(-wanted)))
      kept += Math.min(wanted, chunk.length)
      sizeBytes += chunk.length
      for (let first = parts[0]; first && kept - first.length >= wanted; first = parts[0]) {
        kept -= first.length
        parts.shift()
      }
    },
    toFile() {
      const tail = Buffer.concat(parts)
      const tailAt = sizeBytes - tail.length
      return {
        sizeBytes,
        async readAt(into: Buffer, at: number): Promise<number> {
          into.fill(0)
          const before = Math.max(0, tailAt - at)
          if (before < into.length) tail.copy(into, before, Math.max(0, at - tailAt))
          return Math.min(into.length, sizeBytes - at)
        },
      }
    },
  }
}
