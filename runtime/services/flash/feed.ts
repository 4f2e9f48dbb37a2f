/** Where a disk gets an image's content from: a decoder of its own, or one that several disks share. */
import type { FlashPlan } from '../../core/flash/flash.ts'
import type { Decoders } from '../image/decoders.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import type { Source } from '../image/source.ts'
import { untilAborted } from '../host/watch.ts'
import { copyBody } from './copier.ts'
import { checkDigestFirst, countSource, type Counted } from './counted-source.ts'
import type { Waits } from './wait-times.ts'

export interface Feed extends AsyncDisposable {
  readonly counted: Counted
  /** What comes next, in order. */
  readonly filler: Filler
  /** Copies a part of the content onto the disk. */
  readonly copy: typeof copyBody
}

export type OpenFeed = (waits: Waits, signal: AbortSignal) => Promise<Feed>

/** A decoder of the disk's own. */
export const ownFeed =
  (decoders: Decoders, plan: FlashPlan, given: Source): OpenFeed =>
  async (waits, signal) => {
    const counted = await countImage(plan, given, signal, waits)
    const blocks = await decoders.open(counted.source, plan.image.format)
    return {
      counted,
      filler: createFiller(blocks),
      copy: copyBody,
      [Symbol.asyncDispose]: () => blocks[Symbol.asyncDispose](),
    }
  }

/** A qcow2 is read out of order, so its digest is checked before. */
export async function countImage(
  { image, sha256 }: Pick<FlashPlan, 'image' | 'sha256'>,
  given: Source,
  signal: AbortSignal,
  waits?: Waits,
): Promise<Counted> {
  const isOutOfOrder = image.format === 'qcow2'
  if (sha256 !== null && isOutOfOrder) {
    await untilAborted(signal, checkDigestFirst(given, sha256, signal))
  }
  return countSource(given, isOutOfOrder ? null : sha256, waits)
}
