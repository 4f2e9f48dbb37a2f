/** Which images leave a full cache for a new one. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

interface StoredBlob {
  readonly sha256: string
  readonly sizeBytes: number
  /** Grows with each use of any of them. */
  readonly usedAt: number
  /** Bound to machines, being read, or awaited by a download. */
  readonly isNeeded: boolean
}

export type RoomRefusal =
  | { readonly why: 'larger-than-the-cache'; readonly needed: number; readonly max: number }
  | { readonly why: 'all-needed'; readonly needed: number; readonly free: number }

/** Digests to remove, oldest first. The refusal holds the bytes needed and the most possible. */
export function planEviction(room: {
  readonly blobs: readonly StoredBlob[]
  /** Bytes for downloads under way. */
  readonly promisedBytes: number
  readonly neededBytes: number
  /** 0: no limit. */
  readonly maxBytes: number
}): Result<readonly string[], RoomRefusal> {
  const { blobs, promisedBytes, neededBytes, maxBytes } = room
  if (maxBytes === 0) return accept([])
  if (neededBytes > maxBytes) {
    return refuse({ why: 'larger-than-the-cache', needed: neededBytes, max: maxBytes })
  }
  let free = maxBytes - promisedBytes - blobs.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0)
  const leaving: string[] = []
  const candidates = blobs.filter(({ isNeeded }) => !isNeeded)
  for (const { sha256, sizeBytes } of candidates.toSorted((a, b) => a.usedAt - b.usedAt)) {
    if (free >= neededBytes) break
    leaving.push(sha256)
    free += sizeBytes
  }
  return free >= neededBytes
    ? accept(leaving)
    : refuse({ why: 'all-needed', needed: neededBytes, free: Math.max(0, free) })
}
