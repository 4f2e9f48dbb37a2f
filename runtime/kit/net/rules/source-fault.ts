/** Faults of reading an image, worded alike for every kind of source. */
import { Fault, type FaultOptions } from '#kit/foundation/fault.ts'

export const readingCancelled = (name: string): Fault =>
  new Fault('cancelled', `reading ${name} was cancelled`)

/** Makes the Fault `input-missing`; `reason` is `HTTP 404`, or what the network said, in words. */
export const notReachable = (name: string, reason: string, options?: FaultOptions): Fault =>
  new Fault('input-missing', `image URL not reachable: ${name} (${reason})`, options)

/** Makes the Fault `image-broken`: the bytes themselves are wrong, whatever they were read from. */
export const imageBroken = (message: string, cause?: unknown): Fault =>
  new Fault('image-broken', message, {
    cause,
    hint: 'Download or copy the image again and compare its checksum.',
  })

interface ReadPosition {
  readonly name: string
  /** The first byte that was not read. */
  readonly at: number
  readonly sizeBytes: number | null
}

/**
 * Makes the Fault `source-broken`: reading stopped in the middle. `reason` follows the name and is
 * followed by the place.
 */
export function brokenAt(position: ReadPosition, reason: string, options?: FaultOptions): Fault {
  const { name, at, sizeBytes } = position
  const of = sizeBytes === null ? '' : ` of ${sizeBytes}`
  return new Fault('source-broken', `${name}: ${reason} at byte ${at}${of}`, options)
}
