/** Looks into an image that can only be read from its start: what firmware would read of it is kept in a file. */
import { RAW_FORMAT } from '#appliance/disk-images.ts'
import { type FileHandle, open } from 'node:fs/promises'
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

interface StreamedBootOptions {
  readonly signal: AbortSignal
  /** Rejects where so many bytes do not fit; they become fewer. */
  reserve(remaining: () => number): Promise<void>
}

/** Null: it cannot be known. Overwrites `path`. Rejects with the faults of `blocks` and `reserve`. */
export async function readStreamedBoot(
  blocks: Blocks,
  path: string,
  { signal, reserve }: StreamedBootOptions,
): Promise<ImageBoot | null> {
  await using file = await open(path, 'w+', 0o600)
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  // The table is read when its MiB has come; what came with it may be of a partition already.
  let plan: Plan = { ranges: [{ from: 0, to: HEAD_BYTES + CHUNK_BYTES }], others: null }
  let left = 0
  let at = 0
  while (plan.ranges.some(({ to }) => to > at)) {
    signal.throwIfAborted()
    const piece = await blocks.next(chunk)
    if (piece === null) break
    if (piece.kind === 'data')
      left -= await keep(file, chunk.subarray(0, piece.bytes), at, plan.ranges)
    at += piece.bytes
    if (plan.others !== null || at < HEAD_BYTES) continue
    const planned = await planRanges(file)
    if (planned === null) return null
    plan = planned
    left = sumOf(plan.ranges)
    await reserve(() => Math.max(0, left))
  }
  await file.truncate(at)
  await using source = await openFileSource(path, signal)
  const boot = await readImageBoot(source, RAW_FORMAT)
  return boot === null || (await areNone(file, plan.others ?? []))
    ? boot
    : { ...boot, isSearched: false }
}

/** How many bytes were in the ranges; they lie in the file where they lie in the image. */
async function keep(file: FileHandle, bytes: Buffer, at: number, ranges: readonly Range[]) {
  let kept = 0
  for (const { from, to } of ranges) {
    const first = Math.max(from, at)
    const count = Math.min(to, at + bytes.length) - first
    if (count <= 0) continue
    await file.write(bytes, first - at, count, first)
    kept += count
  }
  return kept
}

/** None of these is a FAT. */
async function areNone(file: FileHandle, places: readonly number[]): Promise<boolean> {
  const readAt = async (into: Buffer, from: number) =>
    (await file.read(into, 0, into.length, from)).bytesRead
  for (const place of places)
    if (place > MAX_OFFSET || (await openFat(readAt, place)) !== null) return false
  return true
}

interface Plan {
  readonly ranges: readonly Range[]
  /** Of these the first sector alone is kept, which says whether it is a FAT. Null: no table yet. */
  readonly others: readonly number[] | null
}

const SECTOR_BYTES = 512
const sumOf = (ranges: readonly Range[]) => ranges.reduce((sum, { from, to }) => sum + to - from, 0)

/** Null: too much, or too far away, or a table that lies. */
async function planRanges(file: FileHandle): Promise<Plan | null> {
  const head = Buffer.alloc(HEAD_BYTES)
  await file.read(head, 0, HEAD_BYTES, 0)
  const readAt = async (into: Buffer, from: number) => head.copy(into, 0, from)
  // A disc, and one FAT without a table: their files may be anywhere.
  if (hasDiscMark(head) || (await openFat(readAt, 0)) !== null) return null
  const { places } = listBootPlaces(head)
  const system = places
    .filter(({ isSystem }) => isSystem)
    .map(({ offset, bytes }) => ({ from: offset, to: offset + bytes }))
  const isSound = system.every(({ from, to }) => from < to && to <= MAX_OFFSET)
  if (!isSound || sumOf(system) > MAX_KEPT_BYTES) return null
  const others = places.filter(({ isSystem }) => !isSystem).map(({ offset }) => offset)
  const sectors = others
    .filter((from) => from <= MAX_OFFSET)
    .map((from) => ({ from, to: from + SECTOR_BYTES }))
  return { ranges: [...system, ...sectors], others }
}
