/** Ranges of data and zeros, a compact record of what was written, and the ends of a disk. */
import { type MovedBackup, parseBackupBytes } from './partition-tables.ts'

/** Bytes of the disk. */
export interface Range {
  readonly offset: number
  readonly bytes: number
}

interface SplitRanges {
  readonly data: readonly Range[]
  readonly zeros: readonly Range[]
}

/** `isReached` must hold from there on; `count` where it never holds. */
export function findFirst(count: number, isReached: (index: number) => boolean): number {
  let [low, high] = [0, count]
  while (low < high) {
    const middle = (low + high) >>> 1
    if (isReached(middle)) high = middle
    else low = middle + 1
  }
  return low
}

export const ZERO_GRAIN = 64 * 1024
/** Shorter runs of zeros are written: one long write beats two short ones and a command. */
export const SHORTEST_ZERO_RUN = 512 * 1024

/**
 * `isZero` looks at the chunk; offsets are relative to it. Runs at its ends count however short, as
 * they may go on in the neighbour, unless they are the smaller part of a grain.
 */
export function splitZeros(
  length: number,
  isZero: (at: number, bytes: number) => boolean,
): SplitRanges {
  const isLong = ({ offset, bytes }: Range) =>
    offset === 0 || offset + bytes === length || bytes >= SHORTEST_ZERO_RUN
  const zeros = listZeroRuns(length, isZero).filter(isLong)
  const starts = [0, ...zeros.map(({ offset, bytes }) => offset + bytes)]
  const data = starts
    .map((offset, index) => ({ offset, bytes: (zeros[index]?.offset ?? length) - offset }))
    .filter(({ bytes }) => bytes > 0)
  return { data, zeros }
}

function listZeroRuns(length: number, isZero: (at: number, bytes: number) => boolean): Range[] {
  const runs: Range[] = []
  let offset = 0
  for (let at = 0; at < length; at += ZERO_GRAIN) {
    const end = Math.min(at + ZERO_GRAIN, length)
    if (isZero(at, end - at)) continue
    if (at > offset) runs.push({ offset, bytes: at - offset })
    offset = end
  }
  if (length > offset) runs.push({ offset, bytes: length - offset })
  return runs
}

const ZEROS = Buffer.alloc(ZERO_GRAIN)
/** In pieces, so that the zeros stay in the processor's cache. */
export function isAllZero(bytes: Buffer): boolean {
  for (let at = 0; at < bytes.length; at += ZEROS.length) {
    const end = Math.min(at + ZEROS.length, bytes.length)
    if (bytes.compare(ZEROS, 0, end - at, at, end) !== 0) return false
  }
  return true
}

/** With a checksum each: 20 bytes an entry, about 5 MB for a TiB of data. */
export interface ExtentLog {
  add(offset: number, bytes: number, checksum: number): void
  readonly count: number
  readonly totalBytes: number
  at(index: number): Range & { readonly checksum: number }
}

export function createExtentLog(): ExtentLog {
  let offsets = new Float64Array(1024)
  let lengths = new Float64Array(1024)
  let sums = new Uint32Array(1024)
  let count = 0
  let totalBytes = 0
  const grow = () => {
    offsets = new Float64Array(offsets.buffer.transfer(offsets.byteLength * 2))
    lengths = new Float64Array(lengths.buffer.transfer(lengths.byteLength * 2))
    sums = new Uint32Array(sums.buffer.transfer(sums.byteLength * 2))
  }
  return {
    add(offset, bytes, checksum) {
      if (count === offsets.length) grow()
      offsets[count] = offset
      lengths[count] = bytes
      sums[count] = checksum
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
      checksum: sums[index] ?? 0,
    }),
  }
}

const END_BYTES = 1024 * 1024
/** Identifies a disk's content; small enough for one write. */
export const FIRST_BYTES = 4096

/** On a very small disk they meet. */
export function locateEnds(diskBytes: number): {
  readonly headBytes: number
  readonly tailStart: number
} {
  const headBytes = Math.min(END_BYTES, diskBytes)
  return { headBytes, tailStart: Math.max(headBytes, diskBytes - END_BYTES) }
}

/** The part of the disk's last MiB behind the image; an unknown size is a least one. */
export function decideCleared(leastImageBytes: number, diskBytes: number): Range | null {
  const offset = Math.max(leastImageBytes, locateEnds(diskBytes).tailStart)
  return offset < diskBytes ? { offset, bytes: diskBytes - offset } : null
}

export interface EndPiece {
  readonly offset: number
  readonly bytes: Buffer
}

export interface EndContents {
  /** The image's first MiB, with the table of what grew. */
  readonly head: Buffer
  readonly tail: Buffer
  /** A GPT's backup that moves to the end of the disk; null: none does. */
  readonly moved: MovedBackup | null
}

/**
 * Written in this order when all else is on the medium: the last MiB, then the first MiB, its first
 * 4 KiB at the very end. Behind the image the last MiB becomes zeros: old RAID, ZFS or LVM
 * signatures are there.
 */
export function planEnds(diskBytes: number, contents: EndContents): readonly EndPiece[] {
  const { headBytes, tailStart } = locateEnds(diskBytes)
  const head = contents.moved?.head ?? contents.head
  return [
    { offset: tailStart, bytes: renderLast(contents, tailStart, diskBytes) },
    { offset: FIRST_BYTES, bytes: head.subarray(FIRST_BYTES, headBytes) },
    { offset: 0, bytes: head.subarray(0, FIRST_BYTES) },
  ].filter(({ bytes }) => bytes.length > 0)
}

function renderLast({ tail, moved }: EndContents, from: number, to: number): Buffer {
  const last = Buffer.alloc(to - from)
  tail.copy(last)
  if (moved !== null) moved.backup.copy(last, moved.offset - from)
  return last
}

interface SplitEnd {
  readonly early: readonly EndPiece[]
  readonly held: readonly EndPiece[]
}

/** For a mount that reaches into the ends. */
export function splitEnds(
  pieces: readonly EndPiece[],
  { headFrom, tailTo }: { readonly headFrom: number; readonly tailTo: number },
): SplitEnd {
  const early: EndPiece[] = []
  const held: EndPiece[] = []
  for (const { offset, bytes } of pieces) {
    const isHead = offset <= FIRST_BYTES
    const at = Math.min(bytes.length, Math.max(0, (isHead ? headFrom : tailTo) - offset))
    const [before, behind] = [
      { offset, bytes: bytes.subarray(0, at) },
      { offset: offset + at, bytes: bytes.subarray(at) },
    ]
    early.push(isHead ? behind : before)
    held.push(isHead ? before : behind)
  }
  return { early: early.filter(isThere), held: held.filter(isThere) }
}

const isThere = ({ bytes }: EndPiece) => bytes.length > 0

/** The disk's end without a backup. */
export function locateBackup(diskBytes: number, { tail, moved }: EndContents): number {
  if (moved !== null) return moved.offset
  const { tailStart } = locateEnds(diskBytes)
  const isWhole = tailStart + tail.length === diskBytes
  return diskBytes - (isWhole ? Math.min(tail.length, parseBackupBytes(tail)) : 0)
}
