/** The identity of an image: sha256 of its canonical source URL (`bty_image_ref`, `ImageEntry.ref`). */
import { createHash } from 'node:crypto'
import { accept, type Result } from '../foundation/result.ts'
import { canonicaliseSource } from '../image/canonical-source.ts'

declare const brand: unique symbol
type ImageRef = string & { readonly [brand]: 'ImageRef' }

/** 64 hexadecimal digits. */
export function refOf(source: string): Result<ImageRef, 'not-a-source'> {
  const canonical = canonicaliseSource(source)
  if (!canonical.ok) return canonical
  return accept(createHash('sha256').update(canonical.value).digest('hex') as ImageRef)
}
