/** Reads the image of a disk in order: the ranges that are wanted, zeros between them, and changes on top. */
import type { RangeList } from './rules/range-list.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import type { Device } from '#engine/disk/device.ts'

/** Replaces bytes of the disk in the image. */
export interface Patch {
  readonly offset: number
  readonly bytes: Buffer
}

/** Ranges this close are read in one go: a seek would cost more. */
const NEAR_BYTES = 256 * 1024
/** What direct reads are aligned to, for every sector size. */
const ALIGNMENT = 4096

export function createDiskReader(
  device: Pick<Device, 'read' | 'tryRead' | 'sizeBytes' | 'sectorBytes'>,
  ranges: RangeList,
  patches: readonly Patch[],
) {
  let at = 0
  let next = 0
  const counts: number[] = []

  function listWanted(end: number): readonly Range[] {
    const wanted: Range[] = []
    for (; next < ranges.count; next += 1) {
      const range = ranges.at(next)
      if (range.offset >= end) break
      const from = Math.max(range.offset, at)
      const to = Math.min(range.offset + range.bytes, end)
      wanted.push({ offset: from - at, bytes: to - from })
      if (range.offset + range.bytes > end) break
    }
    return wanted
  }

  async function read(into: Buffer, wanted: readonly Range[]) {
    const take = ({ offset, bytes }: Range) =>
      [into.subarray(offset, offset + bytes), at + offset] as const
    const readSpan = async (span: Range) => {
      if (await device.tryRead(...take(widen(span, ALIGNMENT, into.length)))) return
      for (const range of wanted.filter((one) => isWithin(one, span))) {
        await device.read(...take(widen(range, device.sectorBytes, into.length)))
      }
    }
    await Promise.all(joinNear(wanted).map(readSpan))
  }

  return {
    /** Fewer bytes than its length only at the disk's end. */
    async fill(whole: Buffer) {
      const length = Math.min(whole.length, device.sizeBytes - at)
      const into = whole.subarray(0, length)
      const wanted = listWanted(at + length)
      await read(into, wanted)
      clearBetween(into, wanted)
      for (const patch of patches) apply(into, at, patch)
      counts.push(wanted.reduce((sum, { bytes }) => sum + bytes, 0))
      at += length
      return length
    },
    /** Only where all of the next bytes are zeros: nothing wanted, nothing patched. */
    skipZeros(bytes: number) {
      const end = at + bytes
      const isWanted = next < ranges.count && ranges.at(next).offset < end
      const isChanged = patches.some(
        (patch) => patch.offset < end && patch.offset + patch.bytes.length > at,
      )
      if (end > device.sizeBytes || isWanted || isChanged) return false
      counts.push(0)
      at = end
      return true
    },
    /** Wanted bytes in the oldest buffer, which is forgotten. */
    takeCount: () => counts.shift() ?? 0,
  }
}

function joinNear(ranges: readonly Range[]): readonly Range[] {
  const spans: Range[] = []
  for (const range of ranges) {
    const last = spans.at(-1)
    if (last === undefined || range.offset - (last.offset + last.bytes) >= NEAR_BYTES) {
      spans.push(range)
    } else {
      const { offset } = last
      spans[spans.length - 1] = { offset, bytes: range.offset + range.bytes - offset }
    }
  }
  return spans
}

/** Spans are further apart than they grow here; a disk ends with a whole sector. */
function widen({ offset, bytes }: Range, unit: number, length: number): Range {
  const start = Math.floor(offset / unit) * unit
  const end = Math.min(Math.ceil((offset + bytes) / unit) * unit, length)
  return { offset: start, bytes: end - start }
}

const isWithin = ({ offset, bytes }: Range, span: Range) =>
  offset >= span.offset && offset + bytes <= span.offset + span.bytes

function clearBetween(into: Buffer, ranges: readonly Range[]) {
  let from = 0
  for (const { offset, bytes } of ranges) {
    into.fill(0, from, offset)
    from = offset + bytes
  }
  into.fill(0, from)
}

function apply(into: Buffer, at: number, { offset, bytes }: Patch) {
  const from = Math.max(offset, at)
  const to = Math.min(offset + bytes.length, at + into.length)
  if (from < to) bytes.copy(into, from - at, from - offset, to - offset)
}
