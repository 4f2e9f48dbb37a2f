/** Which images a machine may read where they come from, and when that is looked at again. */
import type { CatalogEntry } from './catalog.ts'
import { parseLocation, type Location } from '../../../kit/net/rules/image-location.ts'

type OriginLocation = Extract<Location, { kind: 'oras' | 's3' }>

/** An image that comes from a registry or a bucket, and whose bytes are known by their digest. */
export interface OriginImage {
  /** It changes when the address or the digest of the image changes. */
  readonly id: string
  readonly image: CatalogEntry & { readonly sha256: string }
  readonly location: OriginLocation
}

/**
 * Null: the image has no origin that machines can read, or an unknown digest, so that nothing would
 * tell its bytes from others.
 */
export function originOf(image: CatalogEntry): OriginImage | null {
  const { sha256, src, resolvedSrc } = image
  const source = resolvedSrc ?? src
  const location = parseLocation(source)
  if (sha256 === null || !location.ok) return null
  const { value } = location
  if (value.kind !== 'oras' && value.kind !== 's3') return null
  return { id: `${sha256} ${source}`, image: { ...image, sha256 }, location: value }
}

/** The longest time until an origin is looked at again, in milliseconds. */
const AGAIN_MS = 10 * 60_000
const FAILED_MS = 60_000

/** What whoever has an image answered; `unknown`: there was nothing to judge by. */
export type OriginAnswer = 'open' | 'refused' | 'unknown'

/**
 * In milliseconds. A signed address is replaced when a quarter of its time is over; who has refused
 * counts how often it is asked.
 */
export function decideAgainMs(
  kind: OriginLocation['kind'],
  answer: OriginAnswer,
  lifetimeSeconds: number,
): number {
  if (answer === 'unknown') return FAILED_MS
  return kind === 's3' && answer === 'open' ? Math.min(AGAIN_MS, lifetimeSeconds * 250) : AGAIN_MS
}
