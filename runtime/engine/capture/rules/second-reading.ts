/** A second look at which blocks of a partition are used: a map that calls more of them free than it finds is not believed. */
import type { Range } from '#engine/disk/rules/extents.ts'
import type { Chunk } from './mirrors.ts'
import { countWithin, type RangeList } from './range-list.ts'

export interface Looked {
  /** The partition's first bytes, with all superblocks. */
  readonly first: Buffer
  readonly bytes: number
  readonly used: RangeList
  /** Where btrfs keeps its blocks; none of other file systems. */
  readonly chunks: readonly Chunk[]
}

/**
 * Asks for ranges of at most `MAX_READING_BYTES` and gets their bytes in the same order. Ends with why
 * the map is wrong, or null.
 */
export type SecondReading = Generator<readonly Range[], string | null, readonly Buffer[]>

export const MAX_READING_BYTES: number = 4 * 1024 * 1024

/** The only direction that counts: a map that calls too little free only costs time. */
export const tooFree = (witness: string): string => `its map calls blocks free that ${witness} uses`
export const unreadable = (witness: string): string =>
  `its map cannot be compared: ${witness} is not as expected`

export const isCovered = (used: RangeList, range: Range): boolean =>
  countWithin(used, range) === range.bytes

export const isAtMostFree = (used: RangeList, range: Range, freeBytes: number): boolean =>
  range.bytes - countWithin(used, range) <= freeBytes

interface Units {
  readonly offset: number
  readonly unitBytes: number
}

/** Units come in ascending order; the map is asked once for each run. */
export function createUnitCheck(used: RangeList, { offset, unitBytes }: Units) {
  let [first, end] = [0, 0]
  let isRight = true
  const finish = () => {
    const bytes = (end - first) * unitBytes
    isRight &&= bytes === 0 || isCovered(used, { offset: offset + first * unitBytes, bytes })
  }
  return {
    take(unit: number) {
      if (unit !== end) {
        finish()
        first = unit
      }
      end = unit + 1
    },
    /** Call it once, at the end. */
    end() {
      finish()
      return isRight
    },
  }
}

export function* listPieces({ offset, bytes }: Range): Generator<Range> {
  for (let at = 0; at < bytes; at += MAX_READING_BYTES) {
    yield { offset: offset + at, bytes: Math.min(MAX_READING_BYTES, bytes - at) }
  }
}
