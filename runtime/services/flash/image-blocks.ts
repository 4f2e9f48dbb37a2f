/** Opens what a flash writes: by the image's frames where they can be trusted, else from start to end. */
import { Fault } from '../../core/foundation/fault.ts'
import type { FlashPlan } from '../../core/flash/flash.ts'
import { decideEntry } from '../../core/image/entry.ts'
import type { FrameMap } from '../../core/image/frame-map.ts'
import { openFrames, type Compare } from '../frame/frame-blocks.ts'
import type { Blocks } from '../image/blocks.ts'
import type { Decoders } from '../image/decoders.ts'
import { readFrameMap } from '../image/frame-maps.ts'
import type { Source } from '../image/source.ts'
import { checkDigestFirst, countSource, type Counted } from './counted-source.ts'
import type { Waits } from './wait-times.ts'

export interface OpenedImage {
  readonly counted: Counted
  /** Null: the image is read from start to end. */
  readonly map: FrameMap | null
  /** Opens it; `compare` needs a map. */
  open(compare?: Compare): Promise<Blocks>
}

/** Reads no more of the image than its tables, unless its digest must be known first. */
export async function openImage(
  decoders: Decoders,
  { image, sha256, indexSha256 }: FlashPlan,
  source: Source,
  { waits, signal }: { readonly waits: Waits; readonly signal: AbortSignal },
): Promise<OpenedImage> {
  const isOutOfOrder = image.format === 'qcow2'
  if (sha256 !== null && isOutOfOrder) await checkDigestFirst(source, sha256, signal)
  const isMapped = image.format === 'img.zst' && (sha256 === null || indexSha256 !== null)
  const found = isMapped ? await findFrames(source) : null
  // A source that cannot be read here and there is read whole where its digest is known.
  const isWhole = source.readAt === null && sha256 !== null
  const entry = decideEntry(found, { sha256, indexSha256: isWhole ? null : indexSha256 })
  if (!entry.ok) throw otherIndex(image.name, entry.refusal)
  const map = entry.value
  const counted = countSource(source, isOutOfOrder || map !== null ? null : sha256, waits)
  return {
    counted,
    map,
    async open(compare) {
      const { readAt } = counted.source
      if (map === null || readAt === null) return await decoders.open(counted.source, image.format)
      const sources = [{ ...counted.source, readAt }] as const
      return openFrames({ map, sources, ...(compare === undefined ? {} : { compare }) })
    },
  }
}

const findFrames = async (source: Source): Promise<FrameMap | null> =>
  source.readAt === null ? null : await readFrameMap({ ...source, readAt: source.readAt })

const otherIndex = (name: string, why: string) =>
  new Fault('digest-mismatch', `${name} ${why}`, {
    hint: 'Correct the digest of the index, or leave it out to have the whole image read.',
  })
