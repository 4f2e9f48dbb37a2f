/** Puts the shrunk image together, and compares all of it with its source. */
import { join } from 'node:path'
import { rm } from 'node:fs/promises'
import type { Range } from '#engine/disk/rules/extents.ts'
import { SIGNATURE_BYTES } from '#engine/disk/rules/file-systems.ts'
import { parsePartitions } from '#engine/disk/rules/partition-tables.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { MAX_READ_BYTES, type ReadBytes } from './content-comparison.ts'
import { compareExt } from './ext-comparison.ts'
import { compareNtfs } from './ntfs-comparison.ts'
import { EDGE_BYTES, planHead, planHiddenSectors, type Patch } from './rules/shrunk-table.ts'
import type { Layout, Place, ShrinkDisk } from './rules/shrink-plan.ts'
import { copyFile, copyRange, createSparseFile, listData, type SparseFile } from './sparse-file.ts'

interface Assembly {
  readonly whole: SparseFile
  readonly sizeBytes: number
  readonly disk: ShrinkDisk
  readonly layout: Layout
  /** Holds the shrunk file systems; each is removed once it was copied. */
  readonly folder: string
  readonly path: string
  readonly signal: AbortSignal
}

/** The image is at `path` when it resolves. Rejects with a Fault `verify-failed` where anything differs. */
export async function assembleImage(assembly: Assembly): Promise<void> {
  const { whole, disk, layout, folder, path, signal } = assembly
  await using shrunk = await createSparseFile(path)
  const front = { offset: 0, bytes: Math.min(...layout.places.map(({ to }) => to)) }
  await copyRange(whole, front, shrunk, 0, signal)
  for (const { number, from, to, bytes, oldBytes } of layout.places) {
    if (bytes === oldBytes) {
      await copyRange(whole, { offset: from, bytes }, shrunk, to, signal)
      continue
    }
    const part = join(folder, `part-${number}`)
    await copyFile(part, bytes, shrunk, to, signal)
    await rm(part)
  }
  await shrunk.truncate(layout.sizeBytes)
  const planned = planHead(disk, layout)
  // The first partition may begin inside the first MiB.
  const head = planned.head.subarray(0, front.bytes)
  const patches = new Map<Place, readonly Patch[]>()
  for (const place of layout.places) {
    const startBytes = Math.min(SIGNATURE_BYTES, place.bytes)
    const start = await shrunk.read({ offset: place.to, bytes: startBytes })
    const end = await shrunk.read({
      offset: place.to + place.bytes - EDGE_BYTES,
      bytes: EDGE_BYTES,
    })
    const hidden = planHiddenSectors(place, start, end)
    patches.set(place, hidden)
    for (const { offset, bytes } of hidden) await shrunk.patch(bytes, place.to + offset)
  }
  await shrunk.patch(head, 0)
  if (planned.backup !== null) await shrunk.patch(planned.backup.bytes, planned.backup.offset)
  await compare(assembly, { shrunk, front, head, patches })
}

interface Assembled {
  readonly shrunk: SparseFile
  readonly front: Range
  readonly head: Buffer
  readonly patches: ReadonlyMap<Place, readonly Patch[]>
}

async function compare(
  { whole, disk, layout, signal }: Assembly,
  { shrunk, front, head, patches }: Assembled,
) {
  const known = [{ offset: 0, bytes: head }]
  const sides = { whole, shrunk, signal }
  if (!(await isSame(sides, { from: 0, to: 0, bytes: front.bytes }, known))) {
    throw differs('what lies in front')
  }
  checkTable(disk, layout, await shrunk.read({ offset: 0, bytes: disk.head.length }))
  for (const place of layout.places) {
    const { number, words, bytes, oldBytes } = place
    const found =
      bytes === oldBytes
        ? (await isSame(sides, place, patches.get(place) ?? []))
          ? null
          : 'its content'
        : await compareFileSystems(sides, place)
    if (found !== null) throw differs(`partition ${number} (${words}): ${found}`)
  }
}

const differs = (what: string) =>
  new Fault('verify-failed', `the shrunk image differs from its source in ${what}`, {
    hint: 'Pack it without --shrink.',
  })

/** Numbers, names, types, identities and attributes are those of the source. */
function checkTable({ head, sectorBytes }: ShrinkDisk, { places }: Layout, now: Buffer) {
  const [before, after] = [parsePartitions(head, sectorBytes), parsePartitions(now, sectorBytes)]
  if (!before.ok || !after.ok) throw differs('its partition table')
  const expected = before.value.map((partition) => {
    const place = places.find(({ number }) => number === partition.number)
    return place === undefined ? partition : { ...partition, offset: place.to, bytes: place.bytes }
  })
  if (JSON.stringify(expected) !== JSON.stringify(after.value)) throw differs('its partition table')
}

interface Sides {
  readonly whole: SparseFile
  readonly shrunk: SparseFile
  readonly signal: AbortSignal
}

interface Moved {
  readonly from: number
  readonly to: number
  readonly bytes: number
}

/** `patches`: bytes of the new one that are as planned, and lie in it where they say. */
async function isSame(
  { whole, shrunk, signal }: Sides,
  { from, to, bytes }: Moved,
  patches: readonly Patch[],
): Promise<boolean> {
  const held = [
    ...listData(whole.data, { offset: from, bytes }),
    ...[...listData(shrunk.data, { offset: to, bytes })].map((range) => ({
      ...range,
      offset: range.offset - to + from,
    })),
  ]
  for (const range of held) {
    for (let at = 0; at < range.bytes; at += MAX_READ_BYTES) {
      signal.throwIfAborted()
      const offset = range.offset - from + at
      const length = Math.min(MAX_READ_BYTES, range.bytes - at)
      const old = await whole.read({ offset: from + offset, bytes: length })
      for (const patch of patches) lay(patch, old, offset)
      const now = await shrunk.read({ offset: to + offset, bytes: length })
      if (!old.equals(now)) return false
    }
  }
  return true
}

/** Into a piece that begins at `start`. */
function lay({ offset, bytes }: Patch, piece: Buffer, start: number) {
  const from = Math.max(offset, start)
  const to = Math.min(offset + bytes.length, start + piece.length)
  if (from < to) bytes.copy(piece, from - start, from - offset, to - offset)
}

const COMPARE = { ext: compareExt, ntfs: compareNtfs } as const

async function compareFileSystems(sides: Sides, place: Place): Promise<string | null> {
  const { kind, from, oldBytes, to, bytes } = place
  if (kind !== 'ext' && kind !== 'ntfs') return 'its kind'
  const before = readerOf(sides.whole, { offset: from, bytes: oldBytes })
  const after = readerOf(sides.shrunk, { offset: to, bytes })
  try {
    return await COMPARE[kind](before, after, sides.signal)
  } catch (thrown) {
    // A place outside of it, or a structure that makes no sense.
    if (thrown instanceof RangeError) return 'it cannot be read'
    throw thrown
  }
}

/** A RangeError outside of it. */
export const readerOf =
  (file: SparseFile, { offset: start, bytes: size }: Range): ReadBytes =>
  async ({ offset, bytes }) => {
    if (!Number.isSafeInteger(offset) || offset < 0 || offset + bytes > size) throw new RangeError()
    return await file.read({ offset: start + offset, bytes })
  }
