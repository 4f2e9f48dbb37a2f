/** Decides whether an image is entered at its frames or read from start to end. */
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import type { FrameMap } from './frame-map.ts'

interface Pins {
  /** Of the file as stored; null: not known. */
  readonly sha256: string | null
  /** Of the body of its index; null: not known. */
  readonly indexSha256: string | null
}

/**
 * The digest of a file can be checked only by reading all of it: an image that has one is entered
 * only by an index that has a digest of its own. The refusal is a clause to stand after its name.
 */
export function decideEntry(
  map: FrameMap | null,
  { sha256, indexSha256 }: Pins,
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
