/** Makes of an image one whose file systems are as small as they go, on a sparse copy; published only when it equals its source. */
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Range } from '#engine/disk/rules/extents.ts'
import { createMeter } from '#engine/flash/meter.ts'
import type { WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { type ImageFormat, RAW_FORMAT } from '#appliance/disk-images.ts'
import { createDecoders, type Decoders } from '#engine/image/formats.ts'
import { checkImage } from '#engine/image/image-inspection.ts'
import { createImages } from '#engine/image/images.ts'
import { isOutOfOrder, isStoredRaw } from '#engine/image/rules/format.ts'
import { exactBytes } from '#engine/image/rules/image.ts'
import { countSource, openUnordered, type Source } from '#engine/image/sources/source.ts'
import { createSources, type SourcesOptions } from '#engine/image/sources/sources.ts'
import { createFiller } from '#engine/image/stream-blocks.ts'
import { checkNothingThere, packImage, type Packed, type PackOrder } from '#engine/pack/packer.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createShell, type Shell } from '#kit/host/shell.ts'
import { report, untilAborted } from '#kit/host/watch.ts'
import { probeNtfs, shrinkExt, shrinkNtfs, type ShrinkOrder } from './file-system-tools.ts'
import { assembleImage, readerOf } from './image-assembly.ts'
import { readDisk } from './image-disk.ts'
import {
  decideFates,
  type Layout,
  type PartFate,
  planLayout,
  renderStay,
} from './rules/shrink-plan.ts'
import {
  checkRoom,
  createSparseFile,
  copyRange,
  listData,
  PREFIX,
  type SparseFile,
} from './sparse-file.ts'

export type ShrinkStage =
  | { readonly stage: 'unpacking' | 'comparing' | 'packing' }
  | { readonly stage: 'shrinking'; readonly number: number; readonly words: string }

interface ShrinkOptions {
  readonly signal: AbortSignal
  readonly onStage: (stage: ShrinkStage) => void
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
}

interface ShrinkImageOrder extends PackOrder {
  /** Of the least size. */
  readonly reservePercent: number
}

export interface ShrunkImage {
  readonly packed: Packed
  readonly oldBytes: number
  readonly places: Layout['places']
  /** Why others keep their size, and what is to be known; sentences. */
  readonly stays: readonly string[]
  readonly notes: readonly string[]
}

const TICK_MS = 250

/**
 * Rejects with a Fault as `packImage` does, where nothing can be shrunk (`plan-refused`), there is no
 * room (`storage-full`), or the result differs from its source (`verify-failed`). Nothing of the
 * source is changed, and what was made on the way is removed.
 */
export async function shrinkImage(
  given: SourcesOptions,
  order: ShrinkImageOrder,
  options: ShrinkOptions,
): Promise<ShrunkImage> {
  const before = performance.now()
  const { signal, onStage, onProgress } = options
  const shell = createShell(given)
  await checkNothingThere(order.output)
  const folder = await mkdtemp(join(given.env['TMPDIR'] || '/var/tmp', PREFIX))
  try {
    await using whole = await createSparseFile(join(folder, 'whole.img'))
    onStage({ stage: 'unpacking' })
    const { sizeBytes, image } = await spread(given, order, whole, options)
    const disk = await readDisk(shell, whole, sizeBytes, async (part) => {
      await checkRoom(whole.path, countBytes([...listData(whole.data, part)]))
      const path = partPath(folder, part.number)
      await copyPart(whole, part, path, signal)
      return await probeNtfs(shell, path, signal)
    })
    const decided = decideFates(disk)
    const { fates, sizes } = await shrinkParts({ shell, whole, folder, order }, decided, options)
    const stays = fates.flatMap(({ part, words, why }) =>
      why === null ? [] : [renderStay(part.number, words, why)],
    )
    if (sizes.size === 0) throw nothingShrinks(stays)
    const layout = planLayout(disk, fates, sizes)
    if (layout.sizeBytes >= sizeBytes) throw nothingShrinks(stays)
    onStage({ stage: 'comparing' })
    const path = join(folder, 'shrunk.img')
    await assembleImage({ whole, sizeBytes, disk, layout, folder, path, signal })
    onStage({ stage: 'packing' })
    const { output, level } = order
    const packing = {
      image: path,
      format: RAW_FORMAT,
      anyContent: true,
      sha256: null,
      output,
      level,
    } as const
    const packed = await packImage(given, packing, { signal, onProgress })
    const seconds = (performance.now() - before) / 1000
    const { places, notes } = layout
    return { packed: { ...packed, image, seconds }, oldBytes: sizeBytes, places, stays, notes }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const nothingShrinks = (stays: readonly string[]) =>
  new Fault('plan-refused', ['no file system of this image can be shrunk.', ...stays].join(' '), {
    hint: 'Pack it without --shrink.',
  })

/** Decodes the image into a file with holes. */
async function spread(
  given: SourcesOptions,
  order: PackOrder,
  whole: SparseFile,
  { signal, onProgress }: ShrinkOptions,
) {
  const shell = createShell(given)
  const decoders = createDecoders({ shell })
  await using source = await createSources(given).open(order.image, { signal })
  const images = createImages({ shell })
  const { image, imageProblem, sha256 } = await checkImage(
    source,
    order,
    { images, decoders },
    signal,
  )
  if (imageProblem !== null) throw new Fault('plan-refused', imageProblem)
  const { format } = image
  if (format === null) {
    throw new Fault('plan-refused', `image format not recognised: ${image.name}`, {
      hint: 'Name its format with --format.',
    })
  }
  await decoders.check(format)
  // What is stored is less than what it becomes: the rest is checked while it is written.
  await checkRoom(whole.path, 2 * (await readStoredBytes(source, format)))
  await using decoded = await openDecoded({ source, format, sha256, decoders, signal })
  const meter = createMeter({
    phase: 'write',
    totalBytes: exactBytes(image.virtual),
    sourceBytes: source.sizeBytes,
    bytesRead: decoded.bytesRead,
  })
  const filler = createFiller(decoded.blocks)
  async function fill() {
    const piece = Buffer.alloc(PIECE_BYTES)
    let at = 0
    for (;;) {
      signal.throwIfAborted()
      const zeros = filler.takeZeros(Infinity)
      const bytes = zeros > 0 ? 0 : await filler.fill(piece)
      if (zeros + bytes === 0) return at
      await whole.put(piece.subarray(0, bytes), at)
      at += zeros + bytes
      meter.add(zeros + bytes)
    }
  }
  const sizeBytes = await report(untilAborted(signal, fill()), TICK_MS, meter.snapshot, onProgress)
  decoded.checkDigest()
  if (sizeBytes === 0) throw new Fault('plan-refused', `${image.name} holds no image`)
  await whole.truncate(sizeBytes)
  return { sizeBytes, image }
}

const PIECE_BYTES = 1024 * 1024

/** Holes of a raw file are not stored. */
async function readStoredBytes({ path, sizeBytes }: Source, format: ImageFormat): Promise<number> {
  if (path === null || !isStoredRaw(format)) return sizeBytes ?? 0
  return (await stat(path)).blocks * 512
}

async function openDecoded(opening: {
  readonly source: Source
  readonly format: ImageFormat
  readonly sha256: string | null
  readonly decoders: Decoders
  readonly signal: AbortSignal
}) {
  const { source, format, sha256, decoders, signal } = opening
  const isUnordered = isOutOfOrder(format)
  const place = isUnordered ? await openUnordered(source, sha256, signal) : source
  const counted = countSource(place, isUnordered ? null : sha256)
  const blocks = await untilAborted(signal, decoders.open(counted.source, format))
  return {
    blocks,
    bytesRead: counted.bytesRead,
    checkDigest: () => counted.checkDigest(),
    [Symbol.asyncDispose]: () => blocks[Symbol.asyncDispose](),
  }
}

interface PartShrinking {
  readonly shell: Shell
  readonly whole: SparseFile
  readonly folder: string
  readonly order: ShrinkImageOrder
}

const partPath = (folder: string, number: number): string => join(folder, `part-${number}`)

/** `sizes`: of those that became smaller. The other fates say why not. */
async function shrinkParts(
  { shell, whole, folder, order }: PartShrinking,
  decided: readonly PartFate[],
  { signal, onStage }: ShrinkOptions,
) {
  const sizes = new Map<number, number>()
  const fates: PartFate[] = []
  // Copies of NTFS are there since they were probed.
  const wanted = decided.filter(({ kind, why }) => kind === 'ext' && why === null)
  const copied = wanted.flatMap(({ part }) => [...listData(whole.data, part)])
  await checkRoom(whole.path, whole.dataBytes() + countBytes(copied))
  for (const fate of decided) {
    const { part, kind, words, why } = fate
    const path = partPath(folder, part.number)
    if (why !== null || (kind !== 'ext' && kind !== 'ntfs')) {
      await rm(path, { force: true })
      fates.push(fate)
      continue
    }
    onStage({ stage: 'shrinking', number: part.number, words })
    if (kind === 'ext') await copyPart(whole, part, path, signal)
    const { first, bytes } = part
    const { reservePercent } = order
    const source = readerOf(whole, part)
    const shrunk = await SHRINK[kind]({ shell, path, source, first, bytes, reservePercent, signal })
    if (shrunk.ok) sizes.set(part.number, shrunk.value)
    else {
      // Tools that found no room say so in words of their own.
      await checkRoom(path, 0)
      await rm(path, { force: true })
    }
    fates.push(shrunk.ok ? fate : { ...fate, why: shrunk.refusal })
  }
  return { fates, sizes }
}

const countBytes = (ranges: readonly Range[]) => ranges.reduce((sum, { bytes }) => sum + bytes, 0)

const SHRINK: Readonly<
  Record<'ext' | 'ntfs', (order: ShrinkOrder) => ReturnType<typeof shrinkExt>>
> = {
  ext: shrinkExt,
  ntfs: shrinkNtfs,
}

async function copyPart(whole: SparseFile, part: Range, path: string, signal: AbortSignal) {
  await using file = await createSparseFile(path)
  await copyRange(whole, part, file, 0, signal)
  await file.truncate(part.bytes)
}
