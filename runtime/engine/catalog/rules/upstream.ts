/** Decides when a source is looked at again, and whether it moved on since its image was downloaded. */

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
