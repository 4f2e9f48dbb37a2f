/** Everything about a flash that can be known before the first byte is written; decides nothing of it. */
import type { TargetFacts } from '../../core/disk/disk.ts'
import { Fault } from '../../core/foundation/fault.ts'
import type { FlashPlan } from '../../core/flash/flash.ts'
import { detectFormat, type ImageFacts, type ImageFormat } from '../../core/image/image.ts'
import type { Decoders } from '../image/decoders.ts'
import type { Disks } from '../disk/disks.ts'
import { createFiller } from '../image/filler.ts'
import { readHead } from '../image/image-head.ts'
import type { Images } from '../image/images.ts'
import { readSidecar } from '../image/sidecars.ts'
import type { Source } from '../image/source.ts'
import { untilAborted } from '../host/watch.ts'

interface ImageWishes {
  /** What the image is, whatever its name says; null: the source's name tells. */
  readonly format: ImageFormat | null
  /** The digest it must have; null: the one beside it or the one its source promises, where there is one. */
  readonly sha256: string | null
}

export interface CheckedImage {
  readonly image: ImageFacts
  /** Why the image's content cannot be written, in words; null where it can. */
  readonly imageProblem: string | null
  readonly sha256: string | null
}

export interface FlashChecks {
  /** Content, size and digest. What makes the image unfit is a value; what is missing is thrown. */
  checkImage(source: Source, wishes: ImageWishes, signal: AbortSignal): Promise<CheckedImage>
  /** The tools that the image takes, then the target as it is now. */
  checkTarget(path: string, image: ImageFacts, signal: AbortSignal): Promise<TargetFacts>
  /**
   * Decodes the image's first MiB, as the writer does before it touches the disk: a Fault where that
   * is damaged, no disk image, or made for other sectors. For who stops at the plan; standard input
   * stays unread.
   */
  checkContent(plan: FlashPlan, source: Source, signal: AbortSignal): Promise<void>
}

interface FlashChecksDependencies {
  readonly images: Images
  readonly decoders: Decoders
  readonly disks: Disks
}

export function createFlashChecks({
  images,
  decoders,
  disks,
}: FlashChecksDependencies): FlashChecks {
  return {
    async checkImage(source, wishes, signal) {
      const format = wishes.format ?? detectFormat(source.fileName)
      const { image, imageProblem } = await untilAborted(signal, look(source, format, images))
      const sha256 = wishes.sha256 ?? (await readDigest(image)) ?? source.sha256 ?? null
      return { image, imageProblem, sha256 }
    },
    async checkTarget(path, image, signal) {
      if (image.format !== null) await decoders.check(image.format)
      return untilAborted(signal, disks.probe(path, image.path))
    },
    async checkContent(plan, source, signal) {
      if (source.path === null && source.url === null) return
      const opening = decoders.open(source, plan.image.format)
      try {
        const blocks = await untilAborted(signal, opening)
        await untilAborted(signal, readHead(createFiller(blocks), plan))
      } finally {
        await (await opening)[Symbol.asyncDispose]()
      }
    },
  }
}

const readDigest = async ({ path }: ImageFacts) => (path === null ? null : readSidecar(path))

/** An image whose content is no image is one more reason against the plan, not the only one told. */
async function look(source: Source, format: ImageFormat | null, images: Images) {
  try {
    return { image: await images.probe(source, format), imageProblem: null }
  } catch (thrown) {
    if (!(thrown instanceof Fault) || !UNFIT.has(thrown.code)) throw thrown
    const { name, path, url, sizeBytes } = source
    const image: ImageFacts = { name, path, url, format, sizeBytes, virtual: { kind: 'unknown' } }
    return { image, imageProblem: thrown.message }
  }
}

const UNFIT = new Set<string>(['plan-refused', 'image-broken'])
