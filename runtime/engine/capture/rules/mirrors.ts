/** btrfs keeps metadata twice on a disk (DUP), but partclone's map names one copy: what is used of either is of both. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findFirst, type Range } from '#engine/disk/rules/extents.ts'
import { addUnion, createRangeList, listRanges, type RangeList } from './range-list.ts'

/** btrfs's own addresses, and the one or two places of the partition that hold them. */
export interface Chunk {
  readonly logical: number
  readonly bytes: number
  readonly offsets: readonly [number] | readonly [number, number]
}

const CHUNK =
  /\bCHUNK_ITEM (\d{1,16})\) .*\n\t\tlength (\d{1,16}) owner \d+ stripe_len \d+ type ([\w|]{1,64})((?:\n\t\t.*)*)/g
const STRIPE = /\bstripe \d+ devid \d+ offset (\d{1,16})\b/g
const PROFILES = /\b(?:RAID\w+|mixed)\b/

/** `btrfs inspect-internal dump-tree -t chunk`. */
export function parseChunks(text: string): Result<readonly Chunk[], string> {
  const chunks: Chunk[] = []
  for (const [, logical = '', length = '', type = '', more = ''] of text.matchAll(CHUNK)) {
    const offsets = PROFILES.test(type) ? null : readOffsets(more)
    if (offsets === null) return refuse('it spreads its data over devices')
    chunks.push({ logical: Number(logical), bytes: Number(length), offsets })
  }
  return chunks.length === 0 ? refuse('its chunks are not known') : accept(chunks)
}

function readOffsets(stripes: string): Chunk['offsets'] | null {
  const offsets = [...stripes.matchAll(STRIPE)].map(([, offset]) => Number(offset))
  const [one, two, ...others] = offsets
  if (one === undefined || others.length > 0) return null
  return two === undefined ? [one] : [one, two]
}

/** What is used of one copy is used of the other. */
export function addMirrors(
  used: RangeList,
  chunks: readonly Pick<Chunk, 'bytes' | 'offsets'>[],
): RangeList {
  const copies = chunks.flatMap(({ bytes, offsets: [one, two] }) =>
    two === undefined
      ? []
      : [
          ...shift(used, { offset: one, bytes }, two - one),
          ...shift(used, { offset: two, bytes }, one - two),
        ],
  )
  const all = createRangeList()
  addUnion(all, used, listRanges(copies.toSorted((a, b) => a.offset - b.offset)), 0)
  return all
}

function shift(used: RangeList, { offset, bytes }: Range, distance: number): readonly Range[] {
  const moved: Range[] = []
  const isBehind = (range: Range) => range.offset + range.bytes > offset
  const first = findFirst(used.count, (index) => isBehind(used.at(index)))
  for (let index = first; index < used.count; index += 1) {
    const range = used.at(index)
    const from = Math.max(range.offset, offset)
    const to = Math.min(range.offset + range.bytes, offset + bytes)
    if (from >= to) break
    moved.push({ offset: from + distance, bytes: to - from })
  }
  return moved
}
