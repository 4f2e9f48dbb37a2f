/** Opens what a flash writes: by the image's frames where they can be trusted, else from start to end; other places of it serve frames, too. */
import { Fault } from '#kit/foundation/fault.ts'
import type { FlashPlan } from './rules/flash.ts'
import { decideEntry, type FrameMap } from '#engine/image/rules/frame-map.ts'
import type { Compare, FrameOrder } from '#engine/image/frame/frame-blocks.ts'
import { type Blocks, createFiller, type Filler } from '#engine/image/filler.ts'
import type { Decoders } from '#engine/image/formats.ts'
import { FORMATS, isOutOfOrder } from '#engine/image/rules/format.ts'
import type { SeekableSource, Source } from '#engine/image/sources/source.ts'
import type { Sources } from '#engine/image/sources/sources.ts'
import { copyBody } from './copier.ts'
import { countSource, openUnordered, type Counted, type Waits } from './meter.ts'
import type { SlotPool } from './write-slots.ts'

export interface ImageStream extends AsyncDisposable {
  /** What comes next, in order. */
  readonly filler: Filler
  /** Copies a part of the content onto the disk. */
  readonly copy: typeof copyBody
}

interface OpenedStream extends Pick<OpenedBody, 'counted' | 'map'> {
  /** Shared with other disks; absent: the disk has its own. */
  readonly pool?: SlotPool
  /** `compare` needs a map. */
  open(compare?: Compare): Promise<ImageStream>
}

export type OpenStream = (around: Omit<StreamOptions, 'mirrors'>) => Promise<OpenedStream>

/** A decoder of the disk's own. `mirrors`: further sources of the same image, which serve frames as well. */
export const ownStream =
  (
    decoders: Decoders,
    plan: FlashPlan,
    source: Source,
    mirrors: readonly Source[] = [],
  ): OpenStream =>
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

interface OpenedBody {
  readonly counted: Counted
  /** Null: the image is read from start to end. */
  readonly map: FrameMap | null
  /** Opens it; `compare` needs a map. */
  open(compare?: Compare): Promise<Blocks>
}

interface StreamOptions {
  readonly waits: Waits
  readonly signal: AbortSignal
  /** Further sources of the same image, which serve frames as well. */
  readonly mirrors: readonly Source[]
}

/** Reads no more of the image than its tables, unless its digest must be known first. */
export async function openImage(
  decoders: Decoders,
  plan: FlashPlan,
  found: Source,
  { waits, signal, mirrors }: StreamOptions,
): Promise<OpenedBody> {
  const { image, sha256 } = plan
  const isUnordered = isOutOfOrder(image.format)
  const source = isUnordered ? await openUnordered(found, sha256, signal) : found
  const map = await findFrames(plan, source)
  const counted = countSource(source, isUnordered || map !== null ? null : sha256, waits)
  // What other places hold is known to be the same by the digests of the frames alone.
  const isPinned = map !== null && map.indexSha256 !== null
  const places = isPinned
    ? listPlaces(counted.source, mirrors)
    : listPlaces({ ...counted.source, places: [] }, [])
  const openFrames = map && places && (await loadFrames({ map, sources: places }))
  return {
    counted,
    map,
    async open(compare) {
      if (openFrames === null) return decoders.open(counted.source, image.format)
      return openFrames(compare === undefined ? {} : { compare })
    },
  }
}

/** Only for an image in frames. */
async function loadFrames(frames: Pick<FrameOrder, 'map' | 'sources'>) {
  const { openFrames } = await import('#engine/image/frame/frame-blocks.ts')
  return (how: Pick<FrameOrder, 'compare'>): Blocks => openFrames({ ...frames, ...how })
}

/** Null where the image cannot be read here and there. */
function listPlaces(source: Source, mirrors: readonly Source[]): FrameOrder['sources'] | null {
  const first = seekableOf(source)
  if (first === null) return null
  const others = mirrors.map(seekableOf).filter((one) => one?.sizeBytes === source.sizeBytes)
  const [start = first, ...later] = source.places ?? []
  const ordered = later.map((place, at) => ({ ...place, rank: at + 1 }))
  return [start, ...ordered, ...others.filter((one) => one !== null)]
}

/** Null where the image is to be read from start to end. */
async function findFrames(plan: FlashPlan, source: Source): Promise<FrameMap | null> {
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

const seekableOf = (source: Source): SeekableSource | null =>
  source.readAt === null ? null : { ...source, readAt: source.readAt }

/** Where its digest is known, the index may come from any place that has it. */
async function readFrames(source: SeekableSource, indexSha256: string | null) {
  const { readFrameMap } = await import('#engine/image/frame-maps.ts')
  const others = indexSha256 === null ? [] : (source.places ?? []).slice(1)
  return await readFrameMap(source).catch(async (thrown: unknown) => {
    for (const place of others) {
      const map = await readFrameMap(place).catch(() => null)
      if (map !== null && map.indexSha256 === indexSha256) return map
    }
    throw thrown
  })
}
