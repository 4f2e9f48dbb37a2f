/** Checks an image file that is stored here: whether it begins as what its name promises, and ends as that. */
import type { FileHandle } from 'node:fs/promises'
import { MARK_BYTES, describeCut, describePage, notAnImage } from './rules/raw-image.ts'
import { renderMismatch, type FittedImage } from '../rules/image-head.ts'
import type { Sent } from '#kit/net/rules/http-range.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { checkContent, isStoredRaw } from '../rules/format.ts'
import { checkFormatEnd } from '../formats.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { probeImage } from '../images.ts'
import type { SeekableSource } from '../sources/source.ts'
import type { ImageFacts } from '../rules/image.ts'
import { imageBroken } from '#kit/net/rules/network-failure.ts'
import type { Filler } from '../filler.ts'
import { readTail } from '../image-inspection.ts'

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

// Judges the end of an image that was written, or of which the length is known: whether it was cut off.

/** Null: nothing is known to be missing. `storedBytes` null: unknown. */
export function findMissed(
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
