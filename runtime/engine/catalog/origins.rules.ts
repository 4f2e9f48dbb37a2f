/** Which images a machine may read where they come from, and when that is looked at again. */
import type { CatalogEntry } from './rules/catalog.ts'
import { parseLocation, type Location } from '#kit/net/rules/image-location.ts'

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
