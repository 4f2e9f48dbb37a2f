/** Decoded image content piece by piece, and the formats that are one stream: raw, gzip, and those that tools decode. */
import type { Transform, Writable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { type Shell, toolMissing } from '#kit/host/shell.ts'
import { imageBroken } from '#kit/net/rules/network-failure.ts'
import { describePage } from './rules/raw-image.ts'
import { FORMATS } from './rules/format.ts'
import {
  isTrailer,
  MAX_PIECES,
  MAX_TRAILER_BYTES,
  parseTrailer,
  TRAILER_BYTES,
} from './rules/gzip.ts'
import type { Source } from './sources/source.ts'

/** Each costs a turn of the event loop: with 256 KiB, eight disks at once take a tenth longer. */
export const CHUNK_BYTES = 1024 * 1024

/** `own` chunks are given back at once (see `release`). */
type Chunks = 'own' | 'borrowed'

export function blocksOf(stream: AsyncIterable<Buffer>, chunkKind: Chunks): Blocks {
  const chunks = stream[Symbol.asyncIterator]()
  let rest = NOTHING
  return {
    async next(into) {
      while (rest.length === 0) {
        const { done, value } = await chunks.next()
        if (done === true) return null
        rest = value
      }
      const used = rest
      // Most chunks show it in their first bytes; a chunk of zeros is never copied.
      const isZeros = isLong(used) && used.compare(ZEROS, 0, used.length) === 0
      const bytes = isZeros ? used.length : used.copy(into)
      rest = used.subarray(bytes)
      if (rest.length === 0 && chunkKind === 'own') release(used)
      return { kind: isZeros ? 'zeros' : 'data', bytes }
    },
    async [Symbol.asyncDispose]() {
      await chunks.return?.()
    },
  }
}

const NOTHING: Buffer = Buffer.alloc(0)
/** Shorter pieces of a decoder are not worth a look. */
const ZEROS = Buffer.alloc(CHUNK_BYTES)
const isLong = ({ length }: Buffer) => length >= 64 * 1024 && length <= ZEROS.length

export function openRaw(source: Source): Blocks {
  const { readAt, sizeBytes } = source
  if (readAt === null || sizeBytes === null || source.path === null) {
    return blocksOf(source.stream(), 'borrowed')
  }
  let offset = 0
  return {
    async next(into) {
      if (offset >= sizeBytes) return null
      const bytes = await readAt(into.subarray(0, sizeBytes - offset), offset)
      if (bytes === 0) throw endsEarly(source, offset)
      offset += bytes
      return { kind: 'data', bytes }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

export const openGzip = (source: Source): Blocks => blocksOf(gunzip(source), 'own')

/** All members; damage, an early end and garbage behind them are Faults. */
async function* gunzip(source: Source): AsyncGenerator<Buffer> {
  const decoder = createGunzip({ chunkSize: CHUNK_BYTES })
  const end = await findText(source)
  yield* decodeThrough(source, members(source, end, decoder), decoder)
}

/**
 * Text appended as metadata, which a decoder would take for another member; at metadata that begins
 * with zeros it stops by itself. Infinity: none, or nobody can look.
 */
async function findText({ readAt, sizeBytes }: Source): Promise<number> {
  if (readAt === null || sizeBytes === null) return Infinity
  let at = sizeBytes
  for (let pieces = 0; pieces < MAX_PIECES && at >= TRAILER_BYTES; pieces += 1) {
    const last = Buffer.alloc(TRAILER_BYTES)
    await readAt(last, at - TRAILER_BYTES)
    const size = parseTrailer(last)
    if (size === null || size > at) break
    at -= size
  }
  if (at === sizeBytes) return Infinity
  const start = Buffer.alloc(TRAILER_BYTES)
  await readAt(start, at)
  return describePage(start) === null ? Infinity : at
}

/** The decoder stops where no member follows: the rest may only be padding or metadata. */
async function* members(source: Source, end: number, decoder: Gunzip): AsyncGenerator<Buffer> {
  let at = 0
  let rest: Buffer = NOTHING
  for await (const chunk of source.stream()) {
    if (!decoder.readableEnded && at < end) yield chunk.subarray(0, end - at)
    at += chunk.length
    const unread = Math.min(chunk.length, at - Math.min(decoder.bytesWritten, end))
    const behind = chunk.subarray(chunk.length - unread)
    const isPadding = rest.length === 0 && behind.every((byte) => byte === 0)
    if (!isPadding) rest = Buffer.concat([rest, behind])
    if (rest.length > 2 * MAX_TRAILER_BYTES) throw damaged(source, GARBAGE)
  }
  if (!isTrailer(rest)) throw damaged(source, GARBAGE)
}

const GARBAGE = 'something else follows its end'

/** A failure of the source is thrown as it is, any other as damage. */
export async function* decodeThrough(
  source: Source,
  chunks: AsyncIterable<Buffer>,
  decoder: Transform,
): AsyncGenerator<Buffer> {
  const input = remember(chunks)
  // A failure on either side ends the decoder, which throws it below.
  const feeding = writeChunks(input.chunks, decoder).catch((thrown: unknown) => {
    decoder.destroy(thrown instanceof Error ? thrown : new Error(String(thrown)))
  })
  try {
    yield* decoder
    await feeding
    input.check()
  } catch (thrown) {
    input.check()
    throw damaged(source, thrown)
  } finally {
    decoder.destroy()
  }
}

/** `check` throws what ended the chunks, whatever a decoder made of the early end. */
function remember(chunks: AsyncIterable<Buffer>) {
  let failure: { readonly thrown: unknown } | null = null
  async function* passed() {
    try {
      yield* chunks
    } catch (thrown) {
      failure = { thrown }
      throw thrown
    }
  }
  return {
    chunks: passed(),
    check() {
      if (failure !== null) throw failure.thrown
    },
  }
}

/** With the decoder's words behind ours, but without the tools' name for their input, `(stdin)`. */
export function damaged(source: Pick<Source, 'name'>, cause: unknown): Fault {
  const words = renderError(cause).replace(/^\w+: (\(stdin\): )?/, '')
  return imageBroken(`${source.name} is damaged or cut off: ${words}`, cause)
}

const endsEarly = (source: Source, at: number): Fault =>
  new Fault('source-broken', `${source.name} ends early, at byte ${at}`)

/** Asks for a chunk when the stream is done with the last one. */
export async function writeChunks(chunks: AsyncIterable<Buffer>, into: Writable): Promise<void> {
  for await (const chunk of chunks) await write(chunk, into)
  into.end()
}

/** Resolves also when the stream has ended by itself. */
function write(chunk: Buffer, into: Writable): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null) => {
      into.off('end', done).off('close', onClose)
      if (error) reject(error)
      else resolve()
    }
    const onClose = () => done(new Error('closed before all was written'))
    into.once('end', done).once('close', onClose)
    into.write(chunk, done)
  })
}

/**
 * The garbage collector would let some 64 MiB pile up. Only for chunks that nobody else uses, and
 * for the last part of their memory, as decoders cut several chunks out of one piece.
 */
export function release(chunk: Buffer): void {
  const { buffer, byteOffset, length } = chunk
  if (!(buffer instanceof ArrayBuffer) || byteOffset + length !== buffer.byteLength) return
  // Node's own pool of small buffers is nobody's to give back; it never lends all of itself.
  const isPooled = buffer.byteLength === Buffer.poolSize && byteOffset > 0
  if (!isPooled) buffer.transfer(0)
}

/** Fills whole buffers from pieces, and passes long runs of zeros on without allocating them. */
export type Filler = ReturnType<typeof createFiller>

/** Fills whole buffers in image order. Rejects with what `blocks` reject with. */
export function createFiller(blocks: Blocks) {
  let zeros = 0
  let kept = 0
  let ended = false
  return {
    /** Fewer bytes than its length only at the image's end and before kept bytes. */
    async fill(into: Buffer): Promise<number> {
      let at = 0
      while (at < into.length && kept === 0 && !(ended && zeros === 0)) {
        if (zeros > 0) {
          const bytes = Math.min(zeros, into.length - at)
          into.fill(0, at, at + bytes)
          at += bytes
          zeros -= bytes
          continue
        }
        const piece = await blocks.next(at === 0 ? into : into.subarray(at))
        if (piece === null) ended = true
        else if (piece.kind === 'zeros') zeros += piece.bytes
        else if (piece.kind === 'kept') kept += piece.bytes
        else at += piece.bytes
      }
      return at
    },
    /** Bytes that come next and are on the disk already; 0: none known. */
    takeKept(): number {
      const bytes = zeros > 0 ? 0 : kept
      kept -= bytes
      return bytes
    },
    /** Of a known run of zeros that comes next; 0: none known. */
    takeZeros(limit: number): number {
      const bytes = Math.min(zeros, limit)
      zeros -= bytes
      return bytes
    },
  }
}

/** `data` is at the start of the buffer; `kept`: the disk already holds it. */
export type Piece =
  | { readonly kind: 'data'; readonly bytes: number }
  | { readonly kind: 'zeros'; readonly bytes: number }
  | { readonly kind: 'kept'; readonly bytes: number }

export interface Blocks extends AsyncDisposable {
  /**
   * Data is written to the start of `into`; other pieces leave it untouched. Null only after the
   * image's true end: a damaged, short or trailing stream is a Fault.
   */
  next(into: Buffer): Promise<Piece | null>
}

/** A Fault `tool-missing` when there is none. */
export async function findDecoder(shell: Shell, format: ImageFormat): Promise<readonly string[]> {
  const { tools } = FORMATS[format]
  for (const argv of tools) {
    if (await shell.has(argv[0])) return argv
  }
  throw toolMissing(tools[0]?.[0] ?? format)
}

export async function openWithTool(
  source: Source,
  format: ImageFormat,
  shell: Shell,
  chunks: AsyncIterable<Buffer> = source.stream(),
): Promise<Blocks> {
  const argv = await findDecoder(shell, format)
  return blocksOf(throughTool(source, chunks, argv, shell), 'own')
}

async function* throughTool(
  source: Source,
  chunks: AsyncIterable<Buffer>,
  argv: readonly string[],
  shell: Shell,
): AsyncGenerator<Buffer> {
  const child = shell.pipe(argv)
  let words = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    words = (words + text).slice(-2000)
  })
  const exit = new Promise<number>((resolve) => {
    child.once('error', () => resolve(127))
    child.once('close', (code) => resolve(code ?? 128))
  })
  const input = remember(chunks)
  // A tool that ends early closes its input; its exit code says why.
  child.stdin.on('error', () => undefined)
  const feeding = writeChunks(input.chunks, child.stdin).catch(() => child.stdin.destroy())
  try {
    yield* child.stdout
    const code = await exit
    await feeding
    input.check()
    if (code !== 0) throw damaged(source, words.trim() || `${argv[0]} ended with ${code}`)
  } finally {
    child.kill('SIGKILL')
    await exit
  }
}

/** Loaded for bzip2 alone: it makes a table of 64 KiB. */
const loadScan = async () => (await import('./rules/bzip2.ts')).createBzip2Scan()

/** The tools would let garbage behind the image pass. */
export async function* scanBzip2(source: Source): AsyncGenerator<Buffer> {
  const scan = await loadScan()
  for await (const chunk of source.stream()) {
    if (!scan.push(chunk).ok) throw damaged(source, GARBAGE)
    yield chunk
  }
  if (!scan.end().ok) throw damaged(source, GARBAGE)
}

/** A Fault `image-broken` where the file is cut off, or something follows the data. */
export async function checkBzip2End(source: Source): Promise<void> {
  const scan = await loadScan()
  for await (const chunk of source.stream()) if (!scan.push(chunk).ok) throw cutOff(source)
  if (!scan.end().ok || !scan.isWhole()) throw cutOff(source)
}

const cutOff = ({ name }: Source) =>
  new Fault('image-broken', `${name} is cut off, or something follows its end`)
