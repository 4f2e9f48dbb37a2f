/** Decodes formats that are one stream: raw images as they are, others by decoders of this process. */
import type { Transform, Writable } from 'node:stream'
import { createGunzip, type Gunzip } from 'node:zlib'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  isTrailer,
  MAX_PIECES,
  MAX_TRAILER_BYTES,
  parseTrailer,
  TRAILER_BYTES,
} from './content/rules/gzip-trailer.ts'
import { describePage } from './content/rules/raw-image.ts'
import { imageBroken } from '#kit/net/rules/network-failure.ts'
import type { Blocks } from './filler.ts'
import type { Source } from './sources/source.ts'

/**
 * Each buffer costs a turn of the event loop: with 256 KiB, eight disks at once take a tenth
 * longer.
 */
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

export const GARBAGE = 'something else follows its end'

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
export function remember(chunks: AsyncIterable<Buffer>) {
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

// Writes chunks into a stream one at a time and releases their memory, so that few are alive at once.

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
