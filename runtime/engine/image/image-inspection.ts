/** Looks into an image before a disk is touched, and at its end: what it is, for which sectors, whether all of it is there. */
import type { FileHandle } from 'node:fs/promises'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createSlot } from '#engine/disk/device.ts'
import { locateEnds, type Range } from '#engine/disk/rules/extents.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { untilAborted } from '#kit/host/watch.ts'
import type { Sent } from '#kit/net/rules/http-range.ts'
import { imageBroken } from '#kit/net/rules/network-failure.ts'
import {
  describeCut,
  describePage,
  findForeign,
  isDiskImage,
  MARK_BYTES,
  notAnImage,
} from './rules/raw-image.ts'
import { checkFormatEnd, type Decoders } from './formats.ts'
import { type Images, probeImage } from './images.ts'
import {
  checkContent,
  detectContent,
  detectFormat,
  formatOfContent,
  isOutOfOrder,
  isStoredRaw,
  isTarballName,
} from './rules/format.ts'
import { decidePromisedIndex } from './rules/frame-map.ts'
import {
  checkHead,
  decideSectors,
  findBeyond,
  type FittedImage,
  listDosRanges,
  renderMismatch,
  type SectorVerdict,
} from './rules/image-head.ts'
import type { ImageFacts } from './rules/image.ts'
import { compareDigest, readSidecar, type SeekableSource, type Source } from './sources/source.ts'
import { createFiller, type Filler } from './stream-blocks.ts'

export interface ImageInspection {
  readonly head: Buffer
  /** Null: before what was read, or too far away to be decoded for a look. */
  read(offset: number, bytes: number): Promise<Buffer | null>
}

/** Bytes decoded only to be looked at: of a local file, and of a remote one. */
const MAX_LOOKED = { local: 512 * 1024 * 1024, remote: 16 * 1024 * 1024 } as const

/** Null: standard input can be read only once. Rejects with a Fault, as `readHead`. */
export async function inspectImage<Seen>(
  decoders: Decoders,
  { source, plan }: { readonly source: Source; readonly plan: FittedImage },
  signal: AbortSignal,
  see: (image: ImageInspection) => Promise<Seen>,
): Promise<Seen | null> {
  if (source.path === null && source.url === null) return null
  const opening = decoders.open(source, plan.image.format)
  const limit = MAX_LOOKED[source.path === null ? 'remote' : 'local']
  async function inspect() {
    const filler = createFiller(await opening)
    const head = await readHead(filler, plan)
    let at = head.length
    async function skip(to: number) {
      const scratch = createSlot(SCRATCH_BYTES)
      while (at < to) {
        const zeros = filler.takeZeros(to - at)
        const wanted = Math.min(to - at - zeros, SCRATCH_BYTES)
        const filled = await filler.fill(scratch.subarray(0, wanted))
        at += zeros + filled
        if (filled < wanted) return
      }
    }
    return await see({
      head,
      async read(offset, bytes) {
        if (offset < at || offset > limit) return null
        await skip(offset)
        const whole = createSlot(bytes)
        const filled = await filler.fill(whole)
        at += filled
        return whole.subarray(0, filled)
      },
    })
  }
  try {
    return await untilAborted(signal, inspect())
  } finally {
    await (await opening)[Symbol.asyncDispose]()
  }
}

const SCRATCH_BYTES = 1024 * 1024

/** Null: standard input can be read only once. */
export async function inspectSectors(
  decoders: Decoders,
  source: Source,
  plan: FittedImage,
  signal: AbortSignal,
): Promise<SectorVerdict | null> {
  return await inspectImage(decoders, { source, plan }, signal, async (image) => {
    const ranges = listDosRanges(image.head, plan.target.sectorBytes)
    const all = ranges.flatMap(({ here, usual }) => [here, usual])
    const found = await readRanges(image, all)
    return decideSectors(ranges, ({ offset }) => found.get(offset) ?? null)
  })
}

/** Read forward by offset: what lies too close to another place stays unread. */
async function readRanges({ head, read }: ImageInspection, ranges: readonly Range[]) {
  const found = new Map<number, Buffer>()
  for (const { offset, bytes } of ranges.toSorted((one, other) => one.offset - other.offset)) {
    if (bytes === 0 || found.has(offset)) continue
    const isInHead = offset + bytes <= head.length
    const first = isInHead ? head.subarray(offset, offset + bytes) : await read(offset, bytes)
    if (first !== null) found.set(offset, first)
  }
  return found
}

/** The first MiB at most. A Fault `plan-refused`: no disk image, other sectors, or too large. */
export async function readHead(filler: Filler, { image, target }: FittedImage): Promise<Buffer> {
  const { headBytes } = locateEnds(target.identity.sizeBytes)
  const whole = createSlot(headBytes)
  const head = whole.subarray(0, await filler.fill(whole))
  const checked = checkHead(image.name, head, target.sectorBytes, image)
  if (!checked.ok) throw new Fault('plan-refused', checked.refusal)
  const beyond = findBeyond(head, { ...target, sizeBytes: target.identity.sizeBytes })
  if (beyond !== null) throw new Fault('plan-refused', `${image.name} does not fit: ${beyond}`)
  const foreign = image.anyContent === true ? null : findForeign(image, head)
  if (foreign !== null) throw foreign
  return head
}

/** Rejects with a Fault `write-failed` when the image goes on behind the disk's end. */
async function readTail(
  filler: Filler,
  { image, target }: FittedImage,
  bodyEnd: number,
): Promise<Buffer> {
  const { sizeBytes } = target.identity
  const { tailStart } = locateEnds(sizeBytes)
  const whole = createSlot(bodyEnd < tailStart ? 0 : sizeBytes - tailStart)
  const tail = whole.subarray(0, await filler.fill(whole))
  if (tail.length === whole.length && (await filler.fill(createSlot(1))) > 0) {
    throw new Fault(
      'write-failed',
      `${image.name} is larger than ${target.path}: the disk ends at byte ${sizeBytes}`,
      { hint: 'Use a larger disk.' },
    )
  }
  return tail
}

interface StoredFile {
  readonly name: string
  readonly sizeBytes: number
  /** Null: none that can be flashed; anything but a web page is accepted. */
  readonly format: ImageFormat | null
  /** The operator offers it whatever it looks like. */
  readonly anyContent?: boolean
  readonly sent?: Sent | undefined
}

/** Rejects with a Fault `plan-refused` where the file is empty or positively no image. */
export async function checkStart(handle: FileHandle, file: StoredFile): Promise<void> {
  const { name, sizeBytes, anyContent = false } = file
  if (sizeBytes === 0) throw notAnImage(name, 'it is empty')
  if (anyContent) return
  const into = Buffer.alloc(Math.min(sizeBytes, MARK_BYTES))
  checkBytes(file, into.subarray(0, (await handle.read(into, 0, into.length, 0)).bytesRead))
}

function checkBytes(file: StoredFile, head: Buffer): void {
  const { name, format } = file
  const page = describePage(head)
  const isOther = page !== null && (format !== null || page === HTML)
  if (isOther) throw notAnImage(name, `it holds ${page}`)
  const content = format === null ? null : checkContent(format, head)
  if (content === null || content.ok || content.refusal.found === 'raw') return
  throw new Fault('plan-refused', renderMismatch(file, content.refusal))
}

const HTML = 'an HTML page'

/**
 * Decodes all of gzip, reads all of bzip2; a raw image may end anywhere. Rejects with a Fault
 * `image-broken` or `plan-refused`.
 */
export async function checkEnd(
  handle: FileHandle,
  { name, sizeBytes, format }: Omit<StoredFile, 'anyContent'>,
  signal: AbortSignal,
): Promise<void> {
  if (format === null || isStoredRaw(format)) return
  const source = sourceOf(handle, { name, sizeBytes }, signal)
  await probeImage(source, format)
  await checkFormatEnd(format, source)
}

function sourceOf(
  handle: FileHandle,
  { name, sizeBytes }: { readonly name: string; readonly sizeBytes: number },
  signal: AbortSignal,
): SeekableSource {
  return {
    name,
    fileName: name,
    path: name,
    url: null,
    sizeBytes,
    async readAt(into, at) {
      signal.throwIfAborted()
      return (await handle.read(into, 0, into.length, at)).bytesRead
    },
    async *stream(from = 0) {
      for (let at = from; at < sizeBytes;) {
        signal.throwIfAborted()
        const chunk = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, sizeBytes - at))
        const { bytesRead } = await handle.read(chunk, 0, chunk.length, at)
        if (bytesRead === 0) throw new Fault('source-broken', `${name} became shorter`)
        at += bytesRead
        yield chunk.subarray(0, bytesRead)
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

const CHUNK_BYTES = 1024 * 1024

/** Null: nothing is known to be missing. `storedBytes` null: unknown. */
function findMissed(
  { name, format, isCut = false, expectedBytes }: ImageFacts,
  storedBytes: number | null,
): Fault | null {
  if (!isStoredRaw(format) || !isCut || expectedBytes === undefined || storedBytes === null)
    return null
  if (storedBytes >= expectedBytes) return null
  const words = `it has ${storedBytes} bytes, the catalog says ${expectedBytes}, and its own partition table that it ends too early`
  return imageBroken(`${name} is cut off: ${words}`)
}

/** Throws a Fault `image-broken` where the length is known and misses the catalog's. */
export function checkLength(image: ImageFacts, head: Buffer): void {
  const { sizeBytes } = image
  if (!isStoredRaw(image.format) || sizeBytes === null) return
  const isCut = describeCut(head, sizeBytes) !== null
  const missed = findMissed({ ...image, isCut }, sizeBytes)
  if (missed !== null) throw missed
}

interface EndReading {
  readonly plan: FittedImage
  readonly imageStream: { readonly filler: Filler }
  readonly head: Buffer
  readonly counted: { bytesRead(): number; checkDigest(): void }
  readonly warn: ((words: string) => void) | undefined
}

/** Also judges the whole image: rejects with a Fault for another digest or a missed length. */
export async function readEnd(
  { plan, imageStream, head, counted, warn }: EndReading,
  bodyEnd: number,
): Promise<Buffer> {
  const tail = await readTail(imageStream.filler, plan, bodyEnd)
  counted.checkDigest()
  const warning = describeCut(head, bodyEnd + tail.length)
  const missed = findMissed({ ...plan.image, isCut: warning !== null }, counted.bytesRead())
  if (missed !== null) throw missed
  if (warning !== null) warn?.(warning)
  return tail
}

/**
 * Positively a disk image: a partition table, an optical disc, a qcow2, or one of them compressed.
 * A file without any name, as from some registries, goes by its compression. Null: unknown.
 */
export async function recogniseFormat(
  source: Source,
  decoders: Decoders,
): Promise<ImageFormat | null> {
  if (isTarballName(source.fileName)) return null
  const head = await readStart(source)
  const format = head === null ? null : formatOfContent(detectContent(head))
  if (head === null || format === null) return null
  if (isStoredRaw(format)) return isDiskImage(head) ? format : null
  if (isOutOfOrder(format) || source.isNameless === true) return format
  return (await holdsDisk(source, format, decoders)) ? format : null
}

/** Null: nothing can be read more than once. */
async function readStart({ readAt, url, sizeBytes, stream }: Source): Promise<Buffer | null> {
  if (readAt !== null) {
    const into = Buffer.alloc(Math.min(MARK_BYTES, sizeBytes ?? MARK_BYTES))
    return into.subarray(0, await readAt(into, 0))
  }
  if (url === null) return null
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream()) {
    // The source may reuse its memory.
    chunks.push(Buffer.from(chunk))
    bytes += chunk.length
    if (bytes >= MARK_BYTES) break
  }
  return Buffer.concat(chunks).subarray(0, MARK_BYTES)
}

async function holdsDisk(
  source: Source,
  format: ImageFormat,
  decoders: Decoders,
): Promise<boolean> {
  await using blocks = await decoders.open(source, format)
  const into = Buffer.alloc(MARK_BYTES)
  try {
    return isDiskImage(into.subarray(0, await createFiller(blocks).fill(into)))
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === 'image-broken') return false
    throw thrown
  }
}

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

/**
 * Finds out what an image is. What makes it unfit is a value, as it is one reason among others.
 * Rejects with a Fault `digest-mismatch` where its source has another digest than the one asked
 * for, and with another one where a tool or a file is missing.
 */
export async function checkImage(
  source: Source,
  request: ImageRequest,
  { images, decoders }: { readonly images: Images; readonly decoders: Decoders },
  signal: AbortSignal,
): Promise<CheckedImage> {
  // Known before anything is read of it, and before the disk is touched.
  compareDigest(source, source.sha256 ?? source.servedSha256 ?? null, request.sha256)
  const format =
    request.format ??
    detectFormat(source.fileName) ??
    (await untilAborted(signal, recogniseFormat(source, decoders)))
  const probed = await untilAborted(signal, probe(source, format, request, images))
  const known = request.sha256 ?? (await readBeside(probed.image))
  const indexSha256 = decidePromisedIndex({ ...source, isDigestKnown: known !== null })
  return { ...probed, sha256: known ?? source.sha256 ?? null, indexSha256 }
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
