/** btrfs keeps metadata twice on a disk (DUP), but partclone's map names one copy: what is used of either is of both. */
import { accept, refuse, type Result } from '../foundation/result.ts'
import { findFirst, type Range } from '../image/extents.ts'
import { addUnion, createRangeList, listRanges, type RangeList } from './range-list.ts'

/** Two places that hold the same. */
export interface Mirror {
  readonly bytes: number
  readonly offsets: readonly [number, number]
}

const CHUNK = /\blength (\d{1,16}) owner \d+ stripe_len \d+ type ([\w|]{1,64})((?:\n\t\t.*)*)/g
const STRIPE = /\bstripe \d+ devid \d+ offset (\d{1,16})\b/g
const PROFILES = /\b(?:RAID\w+|mixed)\b/

/** Reads `btrfs inspect-internal dump-tree -t chunk`. */
export function parseChunks(text: string): Result<readonly Mirror[], string> {
  const mirrors: Mirror[] = []
  let chunks = 0
  for (const [, length = '', type = '', more = ''] of text.matchAll(CHUNK)) {
    chunks += 1
    const offsets = [...more.matchAll(STRIPE)].map(([, offset]) => Number(offset))
    const [one, two, ...others] = offsets
    if (PROFILES.test(type) || one === undefined || others.length > 0) {
      return refuse('it spreads its data over devices')
    }
    if (two !== undefined) mirrors.push({ bytes: Number(length), offsets: [one, two] })
  }
  return chunks === 0 ? refuse('its chunks are not known') : accept(mirrors)
}

/** What is used of one copy is used of the other. */
export function addMirrors(used: RangeList, mirrors: readonly Mirror[]): RangeList {
  const copies = mirrors.flatMap(({ bytes, offsets: [one, two] }) => [
    ...shift(used, { offset: one, bytes }, two - one),
    ...shift(used, { offset: two, bytes }, one - two),
  ])
  const all = createRangeList()
  addUnion(all, used, listRanges(copies.toSorted((a, b) => a.offset - b.offset)), 0)
  return all
}

/** The used ranges within `place`, moved by `distance`. */
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
