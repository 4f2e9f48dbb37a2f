/** A frame map from a seek table alone, for files of other tools: where frames lie, but no digests. */
import { MAX_FRAMES } from './frame-index.ts'
import type { FrameMap } from './frame-map.ts'
import { readSeekEntry, type SeekFooter } from './zstd-walker.ts'

/** Frames are decoded in memory: larger ones are better read as a stream. */
const MAX_CONTENT_BYTES = 16 * 1024 * 1024
/** Also smaller ones on average, as each is a read of its own. */
const MIN_MEAN_BYTES = 128 * 1024

/**
 * `table`: taken by `parseSeekTable`, and covering the file. Null: too many frames, or sizes that
 * make entering them useless.
 */
export function createTableMap(table: Buffer, footer: SeekFooter): FrameMap | null {
  const sums = sumUp(table, footer)
  const { count, bytes, maxBytes, maxStoredBytes } = sums
  const isWorthwhile =
    count > 1 &&
    count <= MAX_FRAMES &&
    Math.max(maxBytes, maxStoredBytes) <= MAX_CONTENT_BYTES &&
    bytes / count >= MIN_MEAN_BYTES
  if (!isWorthwhile) return null
  const { entries, offsets, storedAt } = listFrames(table, footer, count)
  return {
    ...sums,
    sha256: null,
    indexSha256: null,
    at(index) {
      const { storedBytes, contentBytes } = readSeekEntry(table, footer, entries[index] ?? 0)
      return {
        index,
        offset: offsets[index] ?? 0,
        bytes: contentBytes,
        storedAt: storedAt[index] ?? 0,
        storedBytes,
        isZero: false,
        sha256: null,
      }
    },
  }
}

function sumUp(table: Buffer, footer: SeekFooter) {
  const sums = { count: 0, bytes: 0, maxBytes: 0, maxStoredBytes: 0 }
  for (let entry = 0; entry < footer.frames; entry += 1) {
    const { storedBytes, contentBytes } = readSeekEntry(table, footer, entry)
    if (contentBytes === 0) continue
    sums.count += 1
    sums.bytes += contentBytes
    sums.maxBytes = Math.max(sums.maxBytes, contentBytes)
    sums.maxStoredBytes = Math.max(sums.maxStoredBytes, storedBytes)
  }
  return sums
}

function listFrames(table: Buffer, footer: SeekFooter, count: number) {
  const entries = new Uint32Array(count)
  const [offsets, storedAt] = [new Float64Array(count), new Float64Array(count)]
  let [index, offset, stored] = [0, 0, 0]
  for (let entry = 0; entry < footer.frames; entry += 1) {
    const { storedBytes, contentBytes } = readSeekEntry(table, footer, entry)
    if (contentBytes > 0) {
      entries[index] = entry
      offsets[index] = offset
      storedAt[index] = stored
      index += 1
    }
    offset += contentBytes
    stored += storedBytes
  }
  return { entries, offsets, storedAt }
}
