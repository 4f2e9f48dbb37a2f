/** Looks into an image that can only be read from its start: what firmware would read of it is kept in a file. */
import { open } from 'node:fs/promises'
import { type Blocks, CHUNK_BYTES } from '#engine/image/stream-blocks.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { openFat } from './fat-files.ts'
import { hasDiscMark, HEAD_BYTES, listBootPlaces, readImageBoot } from './image-boot.ts'
import type { ImageBoot } from './rules/boot-facts.ts'

/** Of all EFI system partitions; usual ones have up to 1 GiB, most of it zeros, which are not kept. */
const MAX_KEPT_BYTES = 2 ** 31
/** Further behind, nobody looks. */
const MAX_OFFSET = 2 ** 34

interface Range {
  readonly from: number
  readonly to: number
}

/** Null: it cannot be known. Overwrites `path`. Rejects with the faults of `blocks`. */
export async function readStreamedBoot(
  blocks: Blocks,
  path: string,
  signal: AbortSignal,
): Promise<ImageBoot | null> {
  await using file = await open(path, 'w+', 0o600)
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  // The table is read when its MiB has come; what came with it may be of a partition already.
  let ranges: readonly Range[] = [{ from: 0, to: HEAD_BYTES + CHUNK_BYTES }]
  let isPlanned = false
  let at = 0
  while (!isPlanned || ranges.some(({ to }) => to > at)) {
    signal.throwIfAborted()
    const piece = await blocks.next(chunk)
    if (piece === null) break
    const end = at + piece.bytes
    for (const { from, to } of piece.kind === 'data' ? ranges : []) {
      const first = Math.max(from, at)
      const bytes = Math.min(to, end) - first
      if (bytes > 0) await file.write(chunk, first - at, bytes, first)
    }
    at = end
    if (isPlanned || at < HEAD_BYTES) continue
    isPlanned = true
    const head = Buffer.alloc(HEAD_BYTES)
    await file.read(head, 0, HEAD_BYTES, 0)
    const planned = await planRanges(head)
    if (planned === null) return null
    ranges = planned
  }
  await file.truncate(at)
  await using source = await openFileSource(path, signal)
  return await readImageBoot(source, 'img')
}

/** Null: too much, or too far away. */
async function planRanges(head: Buffer): Promise<readonly Range[] | null> {
  const readAt = async (into: Buffer, from: number) => head.copy(into, 0, from)
  // A disc, and one FAT without a table: their files may be anywhere.
  if (hasDiscMark(head) || (await openFat(readAt, 0)) !== null) return null
  const ranges = listBootPlaces(head).map(({ offset, bytes }) => ({
    from: offset,
    to: offset + bytes,
  }))
  const kept = ranges.reduce((sum, { from, to }) => sum + to - from, 0)
  const isFar = ranges.some(({ to }) => to > MAX_OFFSET)
  return isFar || kept > MAX_KEPT_BYTES ? null : ranges
}
