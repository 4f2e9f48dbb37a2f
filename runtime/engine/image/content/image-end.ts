/** Judges the end of an image that was written, or of which the length is known: whether it was cut off. */
import { describeCut } from './rules/raw-image.ts'
import type { Fault } from '../../../kit/foundation/fault.ts'
import { isStoredRaw } from '../rules/format.ts'
import type { FittedImage } from '../rules/image-head.ts'
import type { ImageFacts } from '../rules/image.ts'
import { imageBroken } from '../../../kit/net/rules/source-fault.ts'
import type { Filler } from '../filler.ts'
import { readTail } from '../image-head-reader.ts'

/** Null where nobody knows better. `storedBytes` is null while its length is not known. */
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

/**
 * Throws a Fault `image-broken` before the first byte is written, where the length is known already
 * and misses the catalog's.
 */
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
  /** The image's first MiB. */
  readonly head: Buffer
  readonly counted: { bytesRead(): number; checkDigest(): void }
  /** Hears what should be known of the image. */
  readonly warn: ((words: string) => void) | undefined
}

/**
 * Reads the image's part of the disk's last MiB. All of the image has been read then, and is
 * judged: it rejects with a Fault where its digest is another one, or a length that is known was
 * missed.
 */
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
