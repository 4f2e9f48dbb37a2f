/** Ranges of a disk in ascending order at 16 bytes each: a map of used blocks may hold millions. */
import { findFirst, type Range } from '#engine/disk/rules/extents.ts'

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
