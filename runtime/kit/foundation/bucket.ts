/** A token bucket: limits a rate per minute and the size of a burst. */

export interface Bucket {
  /** What is left, and when that was (milliseconds). */
  readonly level: number
  readonly at: number
}

interface BucketRate {
  readonly perMinute: number
  /** What a full bucket holds. */
  readonly most: number
}

/**
 * Takes one thing out of a bucket at `now` (milliseconds); null when there is none left. A bucket
 * that is null is full, and a clock that goes back fills nothing.
 */
export function takeOne(bucket: Bucket | null, now: number, rate: BucketRate): Bucket | null {
  const level = bucket === null ? rate.most : refill(bucket, now, rate)
  return level >= 1 ? { level: level - 1, at: now } : null
}

const refill = ({ level, at }: Bucket, now: number, { perMinute, most }: BucketRate): number =>
  Math.min(most, level + (Math.max(0, now - at) / 60_000) * perMinute)
