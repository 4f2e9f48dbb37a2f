/** dm-verity: the superblock of its hashes, and whether a partition's blocks, free ones too, may be hashed beside it. */
import type { Range } from './extents.ts'

const SIGNATURE = Buffer.from('verity\0\0', 'latin1')
const AT = { dataBlockBytes: 64, dataBlocks: 72, end: 80 } as const

/**
 * How many bytes are hashed; null if no superblock of dm-verity stands at the first of these bytes.
 */
export function readVerityBytes(first: Buffer): number | null {
  if (first.length < AT.end || !first.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null
  return first.readUInt32LE(AT.dataBlockBytes) * Number(first.readBigUInt64LE(AT.dataBlocks))
}

/** Of so many bytes, the hashes take at least one: a digest of 20 bytes for a block of 4096. */
export const MAX_HASHED_SHARE = 256

/** Another partition of the disk. */
export interface Neighbour extends Pick<Range, 'bytes'> {
  readonly first: Buffer
  /** It holds something of which nobody knows what it is: hashes need no superblock. */
  readonly isUnknown: boolean
}

/** `ownBytes`: the size of the partition's file system; `bytes`: its own. */
export const isHashedBeside = (
  { ownBytes, bytes }: { readonly ownBytes: number; readonly bytes: number },
  neighbours: readonly Neighbour[],
): boolean =>
  neighbours.some(({ first, bytes: hashBytes, isUnknown }) => {
    const hashed = readVerityBytes(first)
    if (hashed !== null) return ownBytes <= hashed && hashed <= bytes
    return isUnknown && hashBytes * MAX_HASHED_SHARE >= ownBytes
  })
