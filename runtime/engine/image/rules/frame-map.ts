/** Where each frame of a zstd image lies and what it holds: what it takes to enter the image anywhere. */

/** In bytes; `stored…` in the file, others in the image. */
export interface Frame {
  readonly index: number
  readonly offset: number
  readonly bytes: number
  readonly storedAt: number
  readonly storedBytes: number
  readonly isZero: boolean
  /** Hexadecimal; null: only a seek table is known. */
  readonly sha256: string | null
}

export interface FrameMap {
  readonly count: number
  readonly bytes: number
  readonly maxBytes: number
  readonly maxStoredBytes: number
  /** Of the image; null: only a seek table is known, or nobody computed it. */
  readonly sha256: string | null
  /** Of the index's body; null: only a seek table is known. */
  readonly indexSha256: string | null
  at(index: number): Frame
}

export function describeFrames(map: FrameMap) {
  const { count, sha256, indexSha256 } = map
  if (indexSha256 === null) return { count }
  let zeroCount = 0
  for (let index = 0; index < count; index += 1) zeroCount += map.at(index).isZero ? 1 : 0
  const digest = sha256 === null ? {} : { image_sha256: sha256 }
  return { count, zero_count: zeroCount, ...digest, index_sha256: indexSha256 }
}
