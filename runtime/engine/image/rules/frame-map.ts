/** Where each frame of a zstd image lies and what it holds: what it takes to enter the image anywhere. */

/** Offsets and lengths are bytes; `stored…` ones are of the file, the others of the image. */
export interface Frame {
  readonly index: number
  readonly offset: number
  readonly bytes: number
  readonly storedAt: number
  readonly storedBytes: number
  /** Known to hold nothing but zeros. */
  readonly isZero: boolean
  /** The digest of the content, in hexadecimal; null where only a seek table is known. */
  readonly sha256: string | null
}

export interface FrameMap {
  readonly count: number
  /** The image's own size. */
  readonly bytes: number
  /** The largest frame's content, and its size in the file. */
  readonly maxBytes: number
  readonly maxStoredBytes: number
  /** The image's own digest; null where only a seek table is known, or nobody computed it. */
  readonly sha256: string | null
  /** The digest of the index's body; null where only a seek table is known. */
  readonly indexSha256: string | null
  /** `index` from 0 to `count - 1`. */
  at(index: number): Frame
}

/** What people and programs are shown of it. */
export function describeFrames(map: FrameMap) {
  const { count, sha256, indexSha256 } = map
  if (indexSha256 === null) return { count }
  let zeroCount = 0
  for (let index = 0; index < count; index += 1) zeroCount += map.at(index).isZero ? 1 : 0
  const digest = sha256 === null ? {} : { image_sha256: sha256 }
  return { count, zero_count: zeroCount, ...digest, index_sha256: indexSha256 }
}
