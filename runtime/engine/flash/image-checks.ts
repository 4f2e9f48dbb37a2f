/** Checks an image before a flash: its content, its size, and its known digest. */
import { Fault } from '#kit/foundation/fault.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import type { ImageFacts } from '#engine/image/rules/image.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { untilAborted } from '#kit/host/watch.ts'
import { findMissed } from '#engine/image/content/stored-image.ts'
import { decidePromisedIndex } from '#engine/image/rules/frame-map.ts'
import type { Decoders } from '#engine/image/formats.ts'
import type { Images } from '#engine/image/images.ts'
import { readSidecar } from '#engine/image/sources/sidecars.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { compareDigest } from './meter.ts'

export interface ImageRequest {
  /** What the image is, whatever its name says; null: the source's name decides. */
  readonly format: ImageFormat | null
  /** The digest it must have; null: the one beside it or the one its source promises, where there is one. */
  readonly sha256: string | null
  /** Somebody said that it is an image, whatever it looks like; absent: nobody did. */
  readonly anyContent?: boolean | undefined
  /** Bytes as stored, as a catalog says; absent or null: none does. */
  readonly sizeBytes?: number | null | undefined
}

export interface CheckedImage {
  readonly image: ImageFacts
  /** Why the image's content cannot be written, in words; null where it can. */
  readonly imageProblem: string | null
  /** What to do about it; null where nothing is known. */
  readonly imageHint: string | null
  readonly sha256: string | null
  /** The digest of its index, where its source promises one that counts; null: none. */
  readonly indexSha256: string | null
}

interface CheckTools {
  readonly images: Images
  readonly decoders: Decoders
}

/**
 * Finds out what an image is. What makes it unfit is a value, as it is one reason among others.
 * Rejects with a Fault `digest-mismatch` where its source has another digest than the one asked
 * for, and with another one where a tool or a file is missing.
 */
export async function checkImage(
  source: Source,
  request: ImageRequest,
  { images, decoders }: CheckTools,
  signal: AbortSignal,
): Promise<CheckedImage> {
  // Known before anything is read of it, and before the disk is touched.
  compareDigest(source, source.sha256 ?? source.servedSha256 ?? null, request.sha256)
  const format =
    request.format ??
    detectFormat(source.fileName) ??
    (await untilAborted(signal, recognise(source, decoders)))
  const probed = await untilAborted(signal, probe(source, format, request, images))
  const known = request.sha256 ?? (await readBeside(probed.image))
  const indexSha256 = decidePromisedIndex({ ...source, isDigestKnown: known !== null })
  return { ...probed, sha256: known ?? source.sha256 ?? null, indexSha256 }
}

/** Only for a file whose name says nothing. */
async function recognise(source: Source, decoders: Decoders) {
  const { recogniseFormat } = await import('#engine/image/content/recognised-image.ts')
  return recogniseFormat(source, decoders)
}

const readBeside = async ({ path }: ImageFacts) => (path === null ? null : readSidecar(path))

type ProbedImage = Omit<CheckedImage, 'sha256' | 'indexSha256'>

async function probe(
  source: Source,
  format: ImageFormat | null,
  request: Pick<ImageRequest, 'anyContent' | 'sizeBytes'>,
  images: Images,
): Promise<ProbedImage> {
  try {
    const image = await images.probe(source, format, request)
    return compare(image, request.sizeBytes ?? null)
  } catch (thrown) {
    if (!(thrown instanceof Fault) || !UNFIT.has(thrown.code)) throw thrown
    const { name, path, url, sizeBytes } = source
    const image: ImageFacts = { name, path, url, format, sizeBytes, virtual: { kind: 'unknown' } }
    return { image, imageProblem: thrown.message, imageHint: thrown.hint ?? null }
  }
}

/** A catalog may know better how long it is. */
function compare(image: ImageFacts, expected: number | null): ProbedImage {
  if (expected === null) return { image, imageProblem: null, imageHint: null }
  const known = { ...image, expectedBytes: expected }
  const missed = findMissed(known, image.sizeBytes)
  return { image: known, imageProblem: missed?.message ?? null, imageHint: missed?.hint ?? null }
}

const UNFIT = new Set<string>(['plan-refused', 'image-broken'])
