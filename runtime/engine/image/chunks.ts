/** Writes chunks into a stream one at a time and releases their memory, so that few are alive at once. */
import type { Writable } from 'node:stream'

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
