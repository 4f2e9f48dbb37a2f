/** Checks an image before a flash: its content, its size, and its known digest. */
import { Fault } from '../../core/foundation/fault.ts'
import { detectFormat, type ImageFacts, type ImageFormat } from '../../core/image/image.ts'
import { untilAborted } from '../host/watch.ts'
import type { Images } from '../image/images.ts'
import { readSidecar } from '../image/sidecars.ts'
import type { Source } from '../image/source.ts'

export interface ImageRequest {
  /** What the image is, whatever its name says; null: the source's name decides. */
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

/** What makes the image unfit is a value, as it is one reason among others; what is missing is thrown. */
export async function checkImage(
  source: Source,
  request: ImageRequest,
  images: Images,
  signal: AbortSignal,
): Promise<CheckedImage> {
  const format = request.format ?? detectFormat(source.fileName)
  const { image, imageProblem } = await untilAborted(signal, probe(source, format, images))
  const sha256 = request.sha256 ?? (await readBeside(image)) ?? source.sha256 ?? null
  return { image, imageProblem, sha256 }
}

const readBeside = async ({ path }: ImageFacts) => (path === null ? null : readSidecar(path))

async function probe(source: Source, format: ImageFormat | null, images: Images) {
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
