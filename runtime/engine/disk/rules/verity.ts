/** dm-verity: the superblock of its hashes, and whether a partition's blocks, free ones too, may be hashed beside it. */
import type { Range } from './extents.ts'

const SIGNATURE = Buffer.from('verity\0\0', 'latin1')
const AT = { dataBlockBytes: 64, dataBlocks: 72, end: 80 } as const

/** Bytes that are hashed; null: no superblock of dm-verity at these first bytes. */
export function readVerityBytes(first: Buffer): number | null {
  if (first.length < AT.end || !first.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null
  return first.readUInt32LE(AT.dataBlockBytes) * Number(first.readBigUInt64LE(AT.dataBlocks))
}

/** The least share of hashes: a digest of 20 bytes for a block of 4096. */
export const MAX_HASHED_SHARE = 256

export interface Neighbour extends Pick<Range, 'bytes'> {
  readonly first: Buffer
  /** Of unknown content: hashes need no superblock. */
  readonly isUnknown: boolean
}

/** `ownBytes`: of the partition's file system. */
export const isHashedBeside = (
  { ownBytes, bytes }: { readonly ownBytes: number; readonly bytes: number },
  neighbours: readonly Neighbour[],
): boolean =>
  neighbours.some(({ first, bytes: hashBytes, isUnknown }) => {
    const hashed = readVerityBytes(first)
    if (hashed !== null) return ownBytes <= hashed && hashed <= bytes
    return isUnknown && hashBytes * MAX_HASHED_SHARE >= ownBytes
  })
