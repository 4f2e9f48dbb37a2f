/** Packs an image of any format into a `.img.zst` of independent frames: written whole or not at all. */
import { Fault, isMissing, renderError } from '#kit/foundation/fault.ts'
import type { WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { exactBytes, leastBytes, type ImageFacts } from '#engine/image/rules/image.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'
import { createShell } from '#kit/host/shell.ts'
import { report, untilAborted } from '#kit/host/watch.ts'
import { createDecoders, type Decoders } from '#engine/image/formats.ts'
import { createFiller } from '#engine/image/stream-blocks.ts'
import {
  readOnce,
  readTwice,
  type FrameReading,
  checkSize,
  writeFrames,
  type WrittenFrames,
} from '#engine/image/frame/frame-writer.ts'
import { createFrameWorkers } from '#engine/image/frame/frame-workers.ts'
import { createImages } from '#engine/image/images.ts'
import {
  compareDigest,
  countSource,
  openUnordered,
  type Source,
} from '#engine/image/sources/source.ts'
import { createSources, type SourcesOptions } from '#engine/image/sources/sources.ts'
import { createMeter } from '#engine/flash/meter.ts'
import { checkImage } from '#engine/image/image-inspection.ts'
import { randomUUID } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { moveNewFile, removeName } from '#kit/host/folders.ts'

export interface PackOrder {
  /** A path, `-`, an http(s) URL or an oras reference. */
  readonly image: string
  readonly format: ImageFormat | null
  /** Somebody said that it is an image, whatever it looks like. */
  readonly anyContent?: boolean
  readonly sha256: string | null
  /** Nothing may be there. */
  readonly output: string
  readonly level: number
}

interface PackOptions {
  readonly signal: AbortSignal
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
}

export interface Packed extends WrittenFrames {
  readonly image: ImageFacts
  readonly seconds: number
}

const TICK_MS = 250

/** Rejects with a Fault for a bad image or output, and leaves nothing that was written. */
export async function packImage(
  given: SourcesOptions,
  order: PackOrder,
  { signal, onProgress }: PackOptions,
): Promise<Packed> {
  const before = performance.now()
  const shell = createShell(given)
  const decoders = createDecoders({ shell })
  await checkNothingThere(order.output)
  await using source = await createSources(given).open(order.image, { signal })
  const images = createImages({ shell })
  const { image, imageProblem, sha256 } = await checkImage(
    source,
    order,
    { images, decoders },
    signal,
  )
  if (imageProblem !== null) throw new Fault('plan-refused', imageProblem)
  if (image.format === null) throw unknownFormat(image)
  await decoders.check(image.format)
  checkSize(leastBytes(image.virtual))
  const { format } = image
  const written = await writeWhole(order.output, async (write) => {
    await using opened = await openReading({ source, format, sha256, decoders, signal })
    await using workers = createFrameWorkers()
    const meter = createMeter({
      phase: 'write',
      totalBytes: exactBytes(image.virtual),
      sourceBytes: source.sizeBytes,
      bytesRead: opened.bytesRead,
    })
    const { reading } = opened
    const { level } = order
    const writing = writeFrames({ reading, write, workers, level, signal, onWritten: meter.add })
    onProgress(meter.snapshot(format))
    const work = untilAborted(signal, writing)
    const frames = await report(work, TICK_MS, meter.snapshot, onProgress)
    opened.checkDigest(frames)
    if (frames.imageBytes === 0) throw new Fault('plan-refused', `${image.name} holds no image`)
    return frames
  })
  return { ...written, image, seconds: (performance.now() - before) / 1000 }
}

interface OpenedReading extends AsyncDisposable {
  readonly reading: FrameReading
  readonly bytesRead: () => number
  /** A Fault for another digest. */
  readonly checkDigest: (frames: WrittenFrames) => void
}

async function openReading(opening: {
  readonly source: Source
  readonly format: ImageFormat
  /** That the source must have; null: none was given. */
  readonly sha256: string | null
  readonly decoders: Decoders
  readonly signal: AbortSignal
}): Promise<OpenedReading> {
  const { source, format, sha256, decoders, signal } = opening
  const { path, readAt } = source
  if (isStoredRaw(format) && path !== null && readAt !== null) {
    const reading = readTwice({ ...source, readAt })
    return {
      reading,
      bytesRead: reading.bytesRead,
      checkDigest: ({ imageSha256 }) => compareDigest(source, imageSha256 ?? '', sha256),
      [Symbol.asyncDispose]: () => reading[Symbol.asyncDispose](),
    }
  }
  const isUnordered = isOutOfOrder(format)
  if (isUnordered && sha256 !== null) await openUnordered(source, sha256, signal)
  const counted = countSource(source, isUnordered ? null : sha256)
  const blocks = await untilAborted(signal, decoders.open(counted.source, format))
  return {
    reading: readOnce(createFiller(blocks)),
    bytesRead: counted.bytesRead,
    checkDigest: () => counted.checkDigest(),
    [Symbol.asyncDispose]: () => blocks[Symbol.asyncDispose](),
  }
}

const unknownFormat = ({ name }: ImageFacts) =>
  new Fault('plan-refused', `image format not recognised: ${name}`, {
    hint: 'Name its format with --format.',
  })

/** Rejects with a Fault `conflict`, or another one where nobody can tell. */
export async function checkNothingThere(path: string): Promise<void> {
  const there = await stat(path).catch((thrown: unknown) => {
    if (isMissing(thrown)) return null
    throw cannotWrite(path, thrown)
  })
  if (there === null) return
  throw new Fault('conflict', `${path} exists already`, {
    hint: 'Choose another name, or remove it first.',
  })
}

/**
 * The file gets its name when all of it is on the disk. Rejects with a Fault `input-missing`
 * without its folder, another one where it cannot be written.
 */
export async function writeWhole<Result>(
  path: string,
  act: (write: (bytes: Buffer) => Promise<void>) => Promise<Result>,
): Promise<Result> {
  const part = `${path}.${randomUUID().slice(0, 8)}.part`
  const attempt = async <Value>(work: Promise<Value>) =>
    await work.catch((cause: unknown) => {
      throw cause instanceof Fault ? cause : cannotWrite(path, cause)
    })
  const file = await open(part, 'wx').catch((cause: unknown) => {
    if (!isMissing(cause)) throw cannotWrite(path, cause)
    throw new Fault('input-missing', `there is no folder ${dirname(path)}`, { cause })
  })
  let isWhole = false
  try {
    const result = await act(async (bytes) => {
      for (let at = 0; at < bytes.length;) {
        at += (await attempt(file.write(bytes, at))).bytesWritten
      }
    })
    await attempt(file.sync())
    await attempt(moveNewFile(part, path))
    isWhole = true
    return result
  } finally {
    await file.close()
    if (!isWhole) await removeName(part)
  }
}

const cannotWrite = (path: string, cause: unknown) =>
  new Fault('write-failed', `${path} cannot be written: ${renderError(cause)}`, { cause })
