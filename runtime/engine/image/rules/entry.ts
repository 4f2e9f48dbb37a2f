/** Decides whether an image is entered at its frames or read from start to end. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { FrameMap } from './frame-map.ts'

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
