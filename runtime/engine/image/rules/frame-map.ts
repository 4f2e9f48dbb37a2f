/** Where each frame of a zstd image lies and what it holds: what it takes to enter the image anywhere. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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

// Decides whether an image is entered at its frames or read from start to end.

interface ImagePins {
  /** Of the stored file; null: unknown. */
  readonly sha256: string | null
  /** Of the body of its index; null: unknown. */
  readonly indexSha256: string | null
}

/**
 * Null: read from start to end. A file's digest needs all of it, so that an image with one is
 * entered only by an index with a digest of its own. Refused with a clause behind its name.
 */
export function decideEntry(
  map: FrameMap | null,
  { sha256, indexSha256 }: ImagePins,
): Result<FrameMap | null, string> {
  if (indexSha256 !== null) {
    if (map !== null && map.indexSha256 === indexSha256) return accept(map)
    const found = map?.indexSha256 ?? null
    return refuse(
      found === null
        ? 'has no index, but one was expected'
        : `has another index than the one asked for: its sha256 is ${found}, not ${indexSha256}`,
    )
  }
  return accept(sha256 === null ? map : null)
}

interface Promises {
  /** Who asked for the image named it, or it lies beside the image. */
  readonly isDigestKnown: boolean
  readonly indexSha256?: string
  /** The promise was named by its digest. */
  readonly isPinned?: boolean
}

/**
 * Null: an index's digest from the image's own source does not count. A false source could promise
 * another image's index: it counts only where the promise has a digest of its own.
 */
export const decidePromisedIndex = ({
  isDigestKnown,
  indexSha256,
  isPinned = false,
}: Promises): string | null =>
  indexSha256 !== undefined && (!isDigestKnown || isPinned) ? indexSha256 : null

/** What one source of an image gave, where the image has several. */
export interface SourceShare {
  readonly name: string
  readonly bytes: number
  /** Why it was left; null: it was not. */
  readonly trouble: string | null
}
