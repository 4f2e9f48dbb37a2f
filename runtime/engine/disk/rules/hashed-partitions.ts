/** Which partitions dm-verity protects: every byte of them is hashed, so that nothing may be written there. */
import { readFileSystemBytes } from './file-system-size.ts'
import { detectGrowable } from './growable.ts'
import type { Partition } from './tables/partitions.ts'
import { readVerityBytes } from './verity.ts'

/** `behind`: bytes behind its file system; null: they were not read. */
export interface SeenPartition extends Partition {
  readonly first: Buffer
  readonly behind: Buffer | null
}

/** Types of partitions with hashes, and of what is hashed (discoverable partitions). */
const ROOT: Readonly<Record<string, string>> = {
  '2c7357ed-ebd2-46d9-aec1-23d437ec2bf5': '4f68bce3-e8cd-4db1-96e7-fbcaf984b709', // x86-64
  'df3300ce-d69f-4c92-978c-9bfb0f38d820': 'b921b045-1df0-41c3-af44-4c6f280d3fae', // arm64
}
const USR: Readonly<Record<string, string>> = {
  '77ff5f63-e7b6-4633-acf4-1565b864c0e6': '8484680c-9521-48c6-9c11-b0720656f69e', // x86-64
  '6e11a4e7-fbca-4ded-b9e9-e1a512bb664e': 'b0e01050-ee5f-4390-949a-9101b17104e9', // arm64
}

export const listHashed = (partitions: readonly SeenPartition[]): readonly SeenPartition[] =>
  partitions.filter(
    (data) =>
      (data.behind !== null && readVerityBytes(data.behind) !== null) ||
      partitions.some((hashes) => hashes !== data && isHashedBy(data, hashes)),
  )

function isHashedBy(data: SeenPartition, hashes: SeenPartition): boolean {
  const usr = USR[hashes.type]
  if (usr !== undefined) return usr === data.type
  if (ROOT[hashes.type] === data.type) return true
  const bytes = readVerityBytes(hashes.first)
  const end = locateEnd(data.first)
  return bytes !== null && end !== null && bytes >= end && bytes <= data.bytes
}

/** Bytes; null: no file system that is written here. */
export function locateEnd(first: Buffer): number | null {
  const found = detectGrowable(first)
  const type = found.ok && found.value === 'ext' ? 'ext4' : found.ok ? found.value : ''
  return readFileSystemBytes(type, first)
}
