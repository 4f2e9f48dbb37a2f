/** Judges the first bytes of a raw image: what they are instead, and what should be known of them. */
import type { Fault } from '../../../../kit/foundation/fault.ts'
import { isDiskImage, isKnownStart } from './disk-marks.ts'
import { describePage, notAnImage } from './page.ts'
import { isUnmarked, renderCoding, type Sent } from '../../../../kit/net/rules/sent.ts'
import { findCutPartitions, renderShortfall } from './shortfall.ts'

interface Stored {
  readonly name: string
  readonly sent?: Sent | undefined
}

/** Returns the Fault that says why these are positively no disk's bytes; null where they may be. */
export function findForeign({ name, sent }: Stored, head: Buffer): Fault | null {
  const page = describePage(head)
  if (page !== null) return notAnImage(name, `it holds ${page}`)
  const coding = sent !== undefined && isUnmarked(sent) ? sent.coding : null
  return coding === null || isDiskImage(head) ? null : notAnImage(name, renderCoding(coding))
}

/**
 * Says what a person should know of a raw image; `imageBytes` is null while its length is not
 * known.
 */
export function describeRaw(
  head: Buffer,
  imageBytes: number | null,
): { readonly notes: readonly string[]; readonly isCut: boolean } {
  if (!isKnownStart(head)) return { notes: [NOBODYS], isCut: false }
  const cut = imageBytes === null ? null : describeCut(head, imageBytes)
  return { notes: cut === null ? [] : [cut], isCut: cut !== null }
}

/** A warning where partitions end beyond the image's end; null: none does. */
export const describeCut = (head: Buffer, imageBytes: number): string | null =>
  renderShortfall(findCutPartitions(head, imageBytes))

const NOBODYS =
  'no partition table or file system that is known begins the image; it is written as it is'
