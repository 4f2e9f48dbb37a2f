/** Where a disk gets an image's content from: a decoder of its own, or one that several disks share. */
import type { FlashPlan } from '../../core/flash/flash.ts'
import type { FrameMap } from '../../core/image/frame-map.ts'
import type { Compare } from '../frame/frame-blocks.ts'
import type { Decoders } from '../image/decoders.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import type { Source } from '../image/source.ts'
import { copyBody } from './copier.ts'
import type { Counted } from './counted-source.ts'
import { openImage } from './image-blocks.ts'
import type { Waits } from './wait-times.ts'

export interface Feed extends AsyncDisposable {
  readonly counted: Counted
  /** What comes next, in order. */
  readonly filler: Filler
  /** Copies a part of the content onto the disk. */
  readonly copy: typeof copyBody
}

/** An image whose tables were read, and no more. */
export interface OpenedFeed {
  /** Null: the image is read from start to end. */
  readonly map: FrameMap | null
  /** `compare` needs a map. */
  open(compare?: Compare): Promise<Feed>
}

export type OpenFeed = (waits: Waits, signal: AbortSignal) => Promise<OpenedFeed>

/** A decoder of the disk's own; `mirrors` are further sources of the same image. */
export const ownFeed =
  (decoders: Decoders, plan: FlashPlan, given: Source, mirrors: readonly Source[] = []): OpenFeed =>
  async (waits, signal) => {
    const opened = await openImage(decoders, plan, given, { waits, signal, mirrors })
    const { counted, map } = opened
    return {
      map,
      async open(compare) {
        const blocks = await opened.open(compare)
        const filler = createFiller(blocks)
        return {
          counted,
          filler,
          copy: copyBody,
          [Symbol.asyncDispose]: () => blocks[Symbol.asyncDispose](),
        }
      },
    }
  }
