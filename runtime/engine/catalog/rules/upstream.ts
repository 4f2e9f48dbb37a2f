/** Decides when a source is looked at again, and whether it moved on since its image was downloaded. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { CatalogEntry } from './catalog.ts'
import { parseLocation, type Location } from '#kit/net/rules/image-location.ts'

interface KeptVersion {
  readonly sha256: string
  readonly sizeBytes: number
  /** An ETag, a date, or a digest; null or absent: none. */
  readonly version?: string | null | undefined
}

interface FoundVersion {
  /** Absent: the source names none. */
  readonly sha256?: string | undefined
  readonly servedSha256?: string | undefined
  readonly version?: string | null | undefined
  readonly sizeBytes: number | null
}

/** By the best mark that both sides have; without one nothing is known to have changed. */
export function hasMovedOn(kept: KeptVersion, found: FoundVersion): boolean {
  const digest = found.sha256 ?? found.servedSha256
  if (digest !== undefined) return digest !== kept.sha256
  if (found.sizeBytes !== null && found.sizeBytes !== kept.sizeBytes) return true
  const [before, now] = [kept.version ?? null, found.version ?? null]
  // An ETag and a date cannot be compared: a server may begin or cease to send one.
  return before !== null && now !== null && isTag(before) === isTag(now) && before !== now
}

const isTag = (version: string): boolean => /^(?:W\/)?"/.test(version)

/** With a wrong clock the future counts as now, so that no wait exceeds one interval. */
export const ageOf = (lastMs: number, nowMs: number): number => Math.max(0, nowMs - lastMs)

/** ISO 8601; null: not moved on. `hasMoved` null: the look showed nothing, and `before` stays. */
export function decideMovedAt(
  before: string | null,
  hasMoved: boolean | null,
  lookedAt: string,
): string | null {
  if (hasMoved === null) return before
  return hasMoved ? (before ?? lookedAt) : null
}

// Chooses which stored images to remove for a new one: the least recently used, never one that is needed.

interface StoredBlob {
  readonly sha256: string
  readonly sizeBytes: number
  /** Grows with each use of any of them. */
  readonly usedAt: number
  /** Bound to machines, being read, or awaited by a download. */
  readonly isNeeded: boolean
}

interface CacheRoom {
  readonly blobs: readonly StoredBlob[]
  /** Bytes for downloads under way. */
  readonly promisedBytes: number
  readonly neededBytes: number
  /** 0: no limit. */
  readonly maxBytes: number
}

export type RoomRefusal =
  | { readonly why: 'larger-than-the-cache'; readonly needed: number; readonly max: number }
  | { readonly why: 'all-needed'; readonly needed: number; readonly free: number }

/** Digests to remove, oldest first. The refusal holds the bytes needed and the most possible. */
export function planEviction(room: CacheRoom): Result<readonly string[], RoomRefusal> {
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

// Which images a machine may read where they come from, and when that is looked at again.

type OriginLocation = Extract<Location, { kind: 'oras' | 's3' }>

/** From a registry or a bucket, with a known digest. */
export interface OriginImage {
  readonly id: string
  readonly image: CatalogEntry & { readonly sha256: string }
  readonly location: OriginLocation
}

/** Null: machines cannot read it, or its digest is unknown. */
export function originOf(image: CatalogEntry): OriginImage | null {
  const { sha256, src, resolvedSrc } = image
  const source = resolvedSrc ?? src
  const location = parseLocation(source)
  if (sha256 === null || !location.ok) return null
  const { value } = location
  if (value.kind !== 'oras' && value.kind !== 's3') return null
  return { id: `${sha256} ${source}`, image: { ...image, sha256 }, location: value }
}

/** Until an origin is looked at again. */
const AGAIN_MS = 10 * 60_000
const FAILED_MS = 60_000

/** `unknown`: there was nothing to judge by. */
export type OriginAnswer = 'open' | 'refused' | 'unknown'

/** A signed address is replaced after a quarter of its time. */
export function decideAgainMs(
  kind: OriginLocation['kind'],
  answer: OriginAnswer,
  lifetimeSeconds: number,
): number {
  if (answer === 'unknown') return FAILED_MS
  return kind === 's3' && answer === 'open' ? Math.min(AGAIN_MS, lifetimeSeconds * 250) : AGAIN_MS
}
