/** A second look at which blocks of a partition are used: a map that calls more of them free than it finds is not believed. */
import type { Range } from '../../disk/rules/extents.ts'
import type { Chunk } from './mirrors.ts'
import { countWithin, type RangeList } from './range-list.ts'

export interface Looked {
  /** The partition's first bytes, with all superblocks. */
  readonly first: Buffer
  readonly bytes: number
  /** What the map calls used. */
  readonly used: RangeList
  /** Where btrfs keeps its blocks; none of other file systems. */
  readonly chunks: readonly Chunk[]
}

/**
 * Asks for ranges of the partition, at most `MAX_LOOK_BYTES` at once, and gets their bytes in the same
 * order. Ends with why the map is not believed; null: nothing speaks against it.
 */
export type SecondReading = Generator<readonly Range[], string | null, readonly Buffer[]>

export const MAX_READING_BYTES: number = 4 * 1024 * 1024

/** The only direction that counts: a map that calls too little free costs time, and loses nothing. */
export const tooFree = (witness: string): string => `its map calls blocks free that ${witness} uses`
export const unreadable = (witness: string): string =>
  `its map cannot be compared: ${witness} is not as expected`

export const isCovered = (used: RangeList, range: Range): boolean =>
  countWithin(used, range) === range.bytes

export const isAtMostFree = (used: RangeList, range: Range, freeBytes: number): boolean =>
  range.bytes - countWithin(used, range) <= freeBytes

interface Units {
  /** Where the first unit begins. */
  readonly offset: number
  readonly unitBytes: number
}

/** Takes the numbers of used units in ascending order, and asks the map once for each run of them. */
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
    /** Whether the map calls all of them used; asked once, at the end. */
    end() {
      finish()
      return isRight
    },
  }
}

/** A range in pieces that can be asked for, each a multiple of any unit. */
export function* listPieces({ offset, bytes }: Range): Generator<Range> {
  for (let at = 0; at < bytes; at += MAX_READING_BYTES) {
    yield { offset: offset + at, bytes: Math.min(MAX_READING_BYTES, bytes - at) }
  }
}
