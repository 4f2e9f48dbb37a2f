/** Where a disk gets an image's content from: a decoder of its own, or one that several disks share. */
import type { FlashPlan } from './rules/flash.ts'
import type { Compare } from '../image/frame/frame-blocks.ts'
import type { Decoders } from '../image/formats.ts'
import { createFiller, type Filler } from '../image/filler.ts'
import type { Source } from '../image/sources/source.ts'
import { copyBody } from './copier.ts'
import { openImage, type OpenedImage, type Opening } from './image-blocks.ts'
import type { SlotPool } from './write-slots.ts'

export interface Feed extends AsyncDisposable {
  /** What comes next, in order. */
  readonly filler: Filler
  /** Copies a part of the content onto the disk. */
  readonly copy: typeof copyBody
}

interface OpenedFeed extends Pick<OpenedImage, 'counted' | 'map'> {
  /** Shared with other disks; absent: the disk has its own. */
  readonly pool?: SlotPool
  /** `compare` needs a map. */
  open(compare?: Compare): Promise<Feed>
}

export type OpenFeed = (around: Omit<Opening, 'mirrors'>) => Promise<OpenedFeed>

/** A decoder of the disk's own. `mirrors`: further sources of the same image, which serve frames as well. */
export const ownFeed =
  (
    decoders: Decoders,
    plan: FlashPlan,
    source: Source,
    mirrors: readonly Source[] = [],
  ): OpenFeed =>
  async (around) => {
    const { counted, map, open } = await openImage(decoders, plan, source, { ...around, mirrors })
    return {
      counted,
      map,
      async open(compare) {
        const blocks = await open(compare)
        return {
          filler: createFiller(blocks),
          copy: copyBody,
          [Symbol.asyncDispose]: () => blocks[Symbol.asyncDispose](),
        }
      },
    }
  }
