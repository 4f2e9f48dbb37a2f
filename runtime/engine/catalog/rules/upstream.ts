/** Decides when a source is looked at again, and whether it moved on since its image was downloaded. */

interface KeptVersion {
  readonly sha256: string
  readonly sizeBytes: number
  /** An ETag, a date, or a digest; null or absent: the source named none. */
  readonly version?: string | null | undefined
}

interface FoundVersion {
  /** The digest that the source names; absent: it names none. */
  readonly sha256?: string | undefined
  readonly servedSha256?: string | undefined
  readonly version?: string | null | undefined
  readonly sizeBytes: number | null
}

/**
 * The best thing that both sides name decides; where there is none, nothing is known to have
 * changed.
 */
export function hasMovedOn(kept: KeptVersion, found: FoundVersion): boolean {
  const digest = found.sha256 ?? found.servedSha256
  if (digest !== undefined) return digest !== kept.sha256
  if (found.sizeBytes !== null && found.sizeBytes !== kept.sizeBytes) return true
  const [before, now] = [kept.version ?? null, found.version ?? null]
  // An ETag and a date cannot be compared: a server may begin or cease to send one of them.
  return before !== null && now !== null && isTag(before) === isTag(now) && before !== now
}

const isTag = (version: string): boolean => /^(?:W\/)?"/.test(version)

/**
 * Milliseconds, by a clock that may be wrong: a time that lies ahead is as good as now, so that the
 * wait is never longer than one interval.
 */
export const ageOf = (lastMs: number, nowMs: number): number => Math.max(0, nowMs - lastMs)

/**
 * ISO 8601; null where the source has not moved on. `hasMoved` is null where the look showed
 * nothing: then all stays as it was `before`.
 */
export function decideMovedAt(
  before: string | null,
  hasMoved: boolean | null,
  lookedAt: string,
): string | null {
  if (hasMoved === null) return before
  return hasMoved ? (before ?? lookedAt) : null
}
