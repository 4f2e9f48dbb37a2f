/** Which parts of an image hold data and which are zeros, and a compact memory of what was written. */

/** A part of the disk, in bytes. */
export interface Range {
  readonly offset: number
  readonly bytes: number
}

export interface Split {
  readonly data: readonly Range[]
  readonly zeros: readonly Range[]
}

/** The grain in which zeros are looked for. */
export const ZERO_GRAIN = 64 * 1024
/**
 * Shorter runs of zeros inside data are written: one long write beats two short ones and a command.
 */
export const SHORTEST_ZERO_RUN = 512 * 1024

/**
 * Splits a chunk into data and runs of zeros. `isZero(at, bytes)` looks at the chunk; offsets in the
 * answer are relative to the chunk. Runs that touch the chunk's ends count however short, as they
 * may go on in the neighbour chunk, unless they are the smaller part of a grain.
 */
export function splitZeros(length: number, isZero: (at: number, bytes: number) => boolean): Split {
  const data: Range[] = []
  const zeros: Range[] = []
  let dataStart = 0
  let at = 0
  while (at < length) {
    const runStart = at
    while (at < length && isZero(at, Math.min(ZERO_GRAIN, length - at))) {
      at = Math.min(length, at + ZERO_GRAIN)
    }
    const touchesEnd = runStart === 0 || at === length
    if (at > runStart && (touchesEnd || at - runStart >= SHORTEST_ZERO_RUN)) {
      if (runStart > dataStart) data.push({ offset: dataStart, bytes: runStart - dataStart })
      zeros.push({ offset: runStart, bytes: at - runStart })
      dataStart = at
    }
    if (at < length) at = Math.min(length, at + ZERO_GRAIN)
  }
  if (dataStart < length) data.push({ offset: dataStart, bytes: length - dataStart })
  return { data, zeros }
}

/** What was written, with a checksum each: 20 bytes an entry, about 5 MB a TiB of data. */
export interface ExtentLog {
  add(offset: number, bytes: number, crc32: number): void
  readonly count: number
  readonly totalBytes: number
  at(index: number): Range & { readonly crc32: number }
}

export function createExtentLog(): ExtentLog {
  let offsets = new Float64Array(1024)
  let lengths = new Float64Array(1024)
  let sums = new Uint32Array(1024)
  let count = 0
  let totalBytes = 0
  const grow = () => {
    const [oldOffsets, oldLengths, oldSums] = [offsets, lengths, sums]
    offsets = new Float64Array(count * 2)
    lengths = new Float64Array(count * 2)
    sums = new Uint32Array(count * 2)
    offsets.set(oldOffsets)
    lengths.set(oldLengths)
    sums.set(oldSums)
  }
  return {
    add(offset, bytes, crc32) {
      if (count === offsets.length) grow()
      offsets[count] = offset
      lengths[count] = bytes
      sums[count] = crc32
      count += 1
      totalBytes += bytes
    },
    get count() {
      return count
    },
    get totalBytes() {
      return totalBytes
    },
    at: (index) => ({
      offset: offsets[index] ?? 0,
      bytes: lengths[index] ?? 0,
      crc32: sums[index] ?? 0,
    }),
  }
}
