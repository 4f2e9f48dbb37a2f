/** Ranges of a disk in ascending order at 16 bytes each: a map of used blocks may hold millions. */
import { findFirst, type Range } from '#engine/disk/rules/extents.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface RangeList {
  readonly count: number
  readonly totalBytes: number
  at(index: number): Range
  /** In ascending order; joined to the last one where it touches or overlaps that. */
  add(range: Range): void
}

export function createRangeList(): RangeList {
  let starts = new Float64Array(64)
  let ends = new Float64Array(64)
  let count = 0
  let totalBytes = 0
  function append(start: number, end: number) {
    if (count === starts.length) [starts, ends] = [double(starts), double(ends)]
    starts[count] = start
    ends[count] = end
    count += 1
    totalBytes += end - start
  }
  return {
    get count() {
      return count
    },
    get totalBytes() {
      return totalBytes
    },
    at(index) {
      const offset = starts[index] ?? 0
      return { offset, bytes: (ends[index] ?? 0) - offset }
    },
    add({ offset, bytes }) {
      const last = ends[count - 1] ?? -1
      const end = offset + bytes
      if (offset > last) return append(offset, end)
      if (end <= last) return
      ends[count - 1] = end
      totalBytes += end - last
    },
  }
}

const double = ({ buffer, byteLength }: Float64Array<ArrayBuffer>) =>
  new Float64Array(buffer.transfer(byteLength * 2))

export function listRanges(ranges: readonly Range[]): RangeList {
  const list = createRangeList()
  for (const range of ranges) list.add(range)
  return list
}

export function countWithin(
  list: Pick<RangeList, 'count' | 'at'>,
  { offset, bytes }: Range,
): number {
  const end = offset + bytes
  const isBehind = (range: Range) => range.offset + range.bytes > offset
  let sum = 0
  for (
    let index = findFirst(list.count, (one) => isBehind(list.at(one)));
    index < list.count;
    index += 1
  ) {
    const range = list.at(index)
    if (range.offset >= end) break
    sum += Math.min(range.offset + range.bytes, end) - Math.max(range.offset, offset)
  }
  return sum
}

export function addUnion(
  into: RangeList,
  one: Pick<RangeList, 'count' | 'at'>,
  other: Pick<RangeList, 'count' | 'at'>,
  offset: number,
): void {
  const add = (range: Range) => into.add({ offset: offset + range.offset, bytes: range.bytes })
  let a = 0
  let b = 0
  while (a < one.count || b < other.count) {
    const isOne = b >= other.count || (a < one.count && one.at(a).offset <= other.at(b).offset)
    if (isOne) add(one.at(a++))
    else add(other.at(b++))
  }
}

// Reads the map of used blocks that partclone writes (GNU ddrescue's domain file), and trusts none of it.

/** More are not worth their memory: the partition is read whole then. */
const MAX_PIECES = 4_000_000
/** No line of a map is nearly as long. */
export const MAX_MAP_LINE = 256

type MapDefect = 'not-a-map' | 'not-in-order' | 'outside' | 'too-many' | 'empty'

export interface DomainParser {
  /** False: the rest is of no interest. */
  take(line: string): boolean
  isWhole(): boolean
  /** What the map does not mention of the file system counts as used. */
  end(): Result<RangeList, MapDefect>
}

const STATUS = /^0x[0-9A-Fa-f]{1,14}\s+[?*/\-F+G]$/
const PIECE = /^(0x[0-9A-Fa-f]{1,14})\s+(0x[0-9A-Fa-f]{1,14})\s+([?+])$/

/** Bytes of the partition, and of its file system. */
export function createDomainParser(bytes: number, ownBytes: number = bytes): DomainParser {
  const used = createRangeList()
  let defect: MapDefect | null = null
  let hasStatus = false
  let pieces = 0
  let next = 0

  function judge(offset: number, length: number): MapDefect | null {
    if (offset !== next || length === 0) return 'not-in-order'
    if (length > bytes - offset) return 'outside'
    return pieces >= MAX_PIECES ? 'too-many' : null
  }

  function takePiece(line: string): MapDefect | null {
    const [, position = '', size = '', state] = PIECE.exec(line) ?? []
    if (state === undefined) return 'not-a-map'
    const [offset, length] = [Number(position), Number(size)]
    const found = judge(offset, length)
    if (found !== null) return found
    if (state === '+') used.add({ offset, bytes: length })
    pieces += 1
    next = offset + length
    return null
  }

  return {
    take(line) {
      const text = line.trim()
      if (defect !== null) return false
      if (text === '' || text.startsWith('#')) return true
      // The first line that counts is where a rescue would go on.
      if (hasStatus) defect = takePiece(text)
      else if (STATUS.test(text)) hasStatus = true
      else defect = 'not-a-map'
      return defect === null
    },
    isWhole: () => defect === null && next === bytes,
    end() {
      if (defect !== null) return refuse(defect)
      // Every file system has blocks of its own.
      if (used.count === 0) return refuse('empty')
      if (next < ownBytes) used.add({ offset: next, bytes: ownBytes - next })
      return accept(used)
    },
  }
}

const DEFECTS: Readonly<Record<MapDefect, string>> = {
  'not-a-map': 'it is not a map',
  'not-in-order': 'its pieces overlap or leave gaps',
  outside: 'it goes beyond the partition',
  'too-many': 'it has too many pieces',
  empty: 'it names no used block',
}

export const renderMapDefect = (defect: MapDefect): string => DEFECTS[defect]
