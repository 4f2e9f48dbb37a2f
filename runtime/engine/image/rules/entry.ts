/** Decides whether an image is entered at its frames or read from start to end. */
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import type { FrameMap } from './frame-map.ts'

interface ImagePins {
  /** The digest of the file as stored; null: not known. */
  readonly sha256: string | null
  /** The digest of the body of its index; null: not known. */
  readonly indexSha256: string | null
}

/**
 * Decides by which frames an image is entered; null means that it is read from start to end. The
 * digest of a file can be checked only by reading all of it: an image that has one is entered only
 * by an index that has a digest of its own. The refusal is a clause to stand after its name.
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
  /** Who asked for the image named its digest, or it lies beside the image. */
  readonly isDigestKnown: boolean
  /** The digest of the index that the source promises; absent: it promises none. */
  readonly indexSha256?: string
  /** What the source promises was named by its digest. */
  readonly isPinned?: boolean
}

/**
 * Decides whether the digest of an index counts that comes from where the image comes from; null:
 * it does not. Where somebody named the digest of the file, a source that lies could promise the
 * index of another one: then it counts only where the promise has a digest of its own.
 */
export const decidePromisedIndex = ({
  isDigestKnown,
  indexSha256,
  isPinned = false,
}: Promises): string | null =>
  indexSha256 !== undefined && (!isDigestKnown || isPinned) ? indexSha256 : null
