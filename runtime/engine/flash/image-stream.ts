/** Opens what a flash writes: by the image's frames where they can be trusted, else from start to end. */
import { Fault } from '#kit/foundation/fault.ts'
import type { Compare } from '#engine/image/frame/frame-blocks.ts'
import type { Decoders } from '#engine/image/formats.ts'
import { FORMATS, isOutOfOrder } from '#engine/image/rules/format.ts'
import { decideEntry, type FrameMap } from '#engine/image/rules/frame-map.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import {
  countSource,
  openUnordered,
  type Counted,
  type SeekableSource,
  type Source,
} from '#engine/image/sources/source.ts'
import { createFiller, type Blocks, type Filler } from '#engine/image/stream-blocks.ts'
import { copyBody, type SlotPool } from './copier.ts'
import type { Waits } from './meter.ts'
import type { FlashPlan } from './rules/flash-plan.ts'

/** What comes next of an image, in order, and what copies a part of it onto the disk. */
export interface ImageStream extends AsyncDisposable {
  readonly filler: Filler
  readonly copy: typeof copyBody
}

interface Opening {
  readonly waits: Waits
  readonly signal: AbortSignal
}

interface OpenedImage {
  readonly counted: Counted
  /** Null: the image is read from start to end. */
  readonly map: FrameMap | null
}

/** What of a plan reading the image takes. */
type ReadPlan = Pick<FlashPlan, 'image' | 'sha256' | 'indexSha256'>

export type OpenStream = (opening: Opening) => Promise<
  OpenedImage & {
    /** Shared with other disks; absent: the disk has its own. */
    readonly pool?: SlotPool
    /** `compare` needs a map. */
    open(compare?: Compare): Promise<ImageStream>
  }
>

/** A decoder of the disk's own. */
export const ownStream =
  (
    decoders: Decoders,
    plan: FlashPlan,
    source: Source,
    mirrors: readonly Source[] = [],
  ): OpenStream =>
  async (opening) => {
    const image = await openImage(decoders, plan, source, { ...opening, mirrors })
    return {
      ...image,
      async open(compare) {
        const blocks = await image.open(compare)
        return {
          filler: createFiller(blocks),
          copy: copyBody,
          [Symbol.asyncDispose]: () => blocks[Symbol.asyncDispose](),
        }
      },
    }
  }

/**
 * Reads no more of the image than its tables, unless its digest must be known first. `mirrors`:
 * further sources of the same image, which serve frames as well.
 */
export async function openImage(
  decoders: Decoders,
  plan: ReadPlan,
  found: Source,
  { waits, signal, mirrors }: Opening & { readonly mirrors: readonly Source[] },
): Promise<OpenedImage & { open(compare?: Compare): Promise<Blocks> }> {
  const { image, sha256 } = plan
  const isUnordered = isOutOfOrder(image.format)
  const source = isUnordered ? await openUnordered(found, sha256, signal) : found
  const map = await findFrames(plan, source)
  const expected = isUnordered || map !== null ? null : sha256
  const counted = countSource(source, expected, (wait) => waits.during('source', wait))
  return {
    counted,
    map,
    async open(compare) {
      const here = seekableOf(counted.source)
      if (map === null || here === null) return await decoders.open(counted.source, image.format)
      const { openFrames } = await import('#engine/image/frame/frame-blocks.ts')
      // What other places hold is known to be the same by the digests of the frames alone.
      const sources = map.indexSha256 === null ? ([here] as const) : listPlaces(here, mirrors)
      return openFrames({ map, sources, compare })
    },
  }
}

const seekableOf = (source: Source): SeekableSource | null =>
  source.readAt === null ? null : { ...source, readAt: source.readAt }

/** Null where the image is to be read from start to end. */
async function findFrames(plan: ReadPlan, source: Source): Promise<FrameMap | null> {
  const { image, sha256 } = plan
  const readable = seekableOf(source)
  // A source that cannot be read here and there is read whole where its digest is known.
  const indexSha256 = readable === null && sha256 !== null ? null : plan.indexSha256
  const hasFrames = FORMATS[image.format].entered === 'at-frames'
  const isEntered = hasFrames && (sha256 === null || indexSha256 !== null)
  const found = isEntered && readable !== null ? await readFrames(readable, indexSha256) : null
  const entry = decideEntry(found, { sha256, indexSha256 })
  if (entry.ok) return entry.value
  throw new Fault('digest-mismatch', `${image.name} ${entry.refusal}`, {
    hint: 'Correct the digest of the index, or leave it out to have the whole image read.',
  })
}

/** Where its digest is known, the index may come from any place that has it. */
async function readFrames(source: SeekableSource, indexSha256: string | null) {
  const { readFrameMap } = await import('#engine/image/zstd-decoder.ts')
  const others = indexSha256 === null ? [] : (source.places ?? []).slice(1)
  return await readFrameMap(source).catch(async (thrown: unknown) => {
    for (const place of others) {
      const map = await readFrameMap(place).catch(() => null)
      if (map !== null && map.indexSha256 === indexSha256) return map
    }
    throw thrown
  })
}

function listPlaces(source: SeekableSource, mirrors: readonly Source[]) {
  const [start = source, ...later] = source.places ?? []
  const others = mirrors.map(seekableOf).filter((one) => one?.sizeBytes === source.sizeBytes)
  const ordered = later.map((place, at) => ({ ...place, rank: at + 1 }))
  return [start, ...ordered, ...others.filter((one) => one !== null)] as const
}

/** Further places of an image, as far as they can be opened: the image itself is elsewhere as well. */
export async function openMirrors(
  sources: Sources,
  locations: readonly string[],
  signal: AbortSignal,
) {
  await using undo = new AsyncDisposableStack()
  const opening = await Promise.allSettled(locations.map((at) => sources.open(at, { signal })))
  const mirrors = opening.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  for (const source of mirrors) undo.use(source)
  const held = undo.move()
  return { mirrors, [Symbol.asyncDispose]: () => held.disposeAsync() }
}
