/** A frame map from a seek table alone, for files of other tools: where frames lie, but no digests. */
import type { Frame, FrameMap } from './frame-map.ts'
import { readSeekEntry, type SeekFooter } from './seek-table.ts'

/** Frames are decoded as a whole in memory: larger ones are better read as a stream. */
const MAX_CONTENT_BYTES = 16 * 1024 * 1024
/** So are smaller ones, on average: each would be a read of its own. */
const MIN_MEAN_BYTES = 128 * 1024

/**
 * `table`: one that `parseSeekTable` took, and that covers the file. Null where the frames are not of
 * a size that makes it worthwhile to enter them one by one.
 */
export function createTableMap(table: Buffer, footer: SeekFooter): FrameMap | null {
  const frames = listFrames(table, footer)
  const bytes = frames.reduce((sum, frame) => sum + frame.bytes, 0)
  const maxBytes = frames.reduce((most, frame) => Math.max(most, frame.bytes), 0)
  const maxStoredBytes = frames.reduce((most, frame) => Math.max(most, frame.storedBytes), 0)
  const isWorthwhile =
    frames.length > 1 &&
    Math.max(maxBytes, maxStoredBytes) <= MAX_CONTENT_BYTES &&
    bytes / frames.length >= MIN_MEAN_BYTES
  if (!isWorthwhile) return null
  return {
    count: frames.length,
    bytes,
    maxBytes,
    maxStoredBytes,
    sha256: null,
    indexSha256: null,
    at: (index) => frames[index] ?? NO_FRAME,
  }
}

/** Those that hold something. */
function listFrames(table: Buffer, footer: SeekFooter): readonly Frame[] {
  const frames: Frame[] = []
  let storedAt = 0
  let offset = 0
  for (let entry = 0; entry < footer.frames; entry += 1) {
    const { storedBytes, contentBytes: bytes } = readSeekEntry(table, footer, entry)
    const index = frames.length
    if (bytes > 0) {
      frames.push({ index, offset, bytes, storedAt, storedBytes, isZero: false, sha256: null })
    }
    storedAt += storedBytes
    offset += bytes
  }
  return frames
}

const NO_FRAME: Frame = {
  index: 0,
  offset: 0,
  bytes: 0,
  storedAt: 0,
  storedBytes: 0,
  isZero: true,
  sha256: null,
}
