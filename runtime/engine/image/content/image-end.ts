/** Judges the end of an image that was written, or of which the length is known: whether it was cut off. */
import { describeCut } from './rules/raw-image.ts'
import type { Fault } from '#kit/foundation/fault.ts'
import { isStoredRaw } from '../rules/format.ts'
import type { FittedImage } from '../rules/image-head.ts'
import type { ImageFacts } from '../rules/image.ts'
import { imageBroken } from '#kit/net/rules/source-fault.ts'
import type { Filler } from '../filler.ts'
import { readTail } from '../image-head-reader.ts'

/** Null: nothing is known to be missing. `storedBytes` null: unknown. */
export function findMissed(
  { name, format, isCut = false, expectedBytes }: ImageFacts,
  storedBytes: number | null,
): Fault | null {
  if (!isStoredRaw(format) || !isCut || expectedBytes === undefined || storedBytes === null)
    return null
  if (storedBytes >= expectedBytes) return null
  const words = `it has ${storedBytes} bytes, the catalog says ${expectedBytes}, and its own partition table that it ends too early`
  return imageBroken(`${name} is cut off: ${words}`)
}

/** Throws a Fault `image-broken` where the length is known and misses the catalog's. */
export function checkLength(image: ImageFacts, head: Buffer): void {
  const { sizeBytes } = image
  if (!isStoredRaw(image.format) || sizeBytes === null) return
  const isCut = describeCut(head, sizeBytes) !== null
  const missed = findMissed({ ...image, isCut }, sizeBytes)
  if (missed !== null) throw missed
}

interface EndReading {
  readonly plan: FittedImage
  readonly imageStream: { readonly filler: Filler }
  readonly head: Buffer
  readonly counted: { bytesRead(): number; checkDigest(): void }
  readonly warn: ((words: string) => void) | undefined
}

/** Also judges the whole image: rejects with a Fault for another digest or a missed length. */
export async function readEnd(
  { plan, imageStream, head, counted, warn }: EndReading,
  bodyEnd: number,
): Promise<Buffer> {
  const tail = await readTail(imageStream.filler, plan, bodyEnd)
  counted.checkDigest()
  const warning = describeCut(head, bodyEnd + tail.length)
  const missed = findMissed({ ...plan.image, isCut: warning !== null }, counted.bytesRead())
  if (missed !== null) throw missed
  if (warning !== null) warn?.(warning)
  return tail
}
