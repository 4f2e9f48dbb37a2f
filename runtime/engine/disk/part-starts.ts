/** Reads how the partitions of a disk or of an image begin, and what lies behind their file systems. */
import { createSlot, type Device } from './device.ts'
import { SIGNATURE_BYTES } from './rules/growable.ts'
import type { Partition } from './rules/tables/partitions.ts'
import { locateEnd, type SeenPartition } from './rules/hashed-partitions.ts'

/** A superblock of hashes takes no more; direct I/O takes whole blocks. */
const BLOCK_BYTES = 4096

/** Null: it cannot look. */
type Reading = (offset: number, bytes: number) => Promise<Buffer | null>

async function readStarts(
  partitions: readonly Partition[],
  read: Reading,
): Promise<readonly SeenPartition[]> {
  const seen: SeenPartition[] = []
  for (const part of partitions.toSorted((one, other) => one.offset - other.offset)) {
    const first = (await read(part.offset, Math.min(SIGNATURE_BYTES, part.bytes))) ?? NONE
    const end = locateEnd(first) ?? part.bytes
    const at = end - (end % BLOCK_BYTES)
    const isLess = Math.max(at, first.length) + 2 * BLOCK_BYTES <= part.bytes
    const block = isLess ? await read(part.offset + at, 2 * BLOCK_BYTES) : null
    seen.push({ ...part, first, behind: block?.subarray(end - at) ?? null })
  }
  return seen
}

const NONE = Buffer.alloc(0)

export const readDeviceStarts = (device: Device, partitions: readonly Partition[]) =>
  readStarts(partitions, async (offset, bytes) => {
    if (offset + bytes > device.sizeBytes) return null
    const slot = createSlot(bytes)
    await device.read(slot, offset)
    return slot
  })

/** `head`: the image's first bytes, which were read already. */
export const readImageStarts = (
  { head, read }: { readonly head: Buffer; readonly read: Reading },
  partitions: readonly Partition[],
) =>
  readStarts(partitions, async (offset, bytes) =>
    offset + bytes <= head.length ? head.subarray(offset, offset + bytes) : read(offset, bytes),
  )
