/** Writes chunks into a stream one at a time and releases their memory, so that few are alive at once. */
import type { Writable } from 'node:stream'

/**
 * Writes every chunk and ends the stream. The next chunk is asked for only when the stream is done
 * with the last one, so a source may use its memory again. Rejects when either side fails.
 */
export async function writeChunks(chunks: AsyncIterable<Buffer>, into: Writable): Promise<void> {
  for await (const chunk of chunks) await write(chunk, into)
  into.end()
}

/** Resolves when the stream is done with the chunk: it took it, or has come to its own end. */
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
 * Gives the memory of a used-up chunk back at once: left to the garbage collector, some 64 MiB of
 * them would pile up. Only for chunks that belong to nobody else, and only with the last part of
 * the memory behind them, as a decoder cuts several chunks out of one piece.
 */
export function release(chunk: Buffer): void {
  const { buffer, byteOffset, length } = chunk
  if (!(buffer instanceof ArrayBuffer) || byteOffset + length !== buffer.byteLength) return
  // Node's own pool of small buffers is nobody's to give back; it never lends all of itself.
  const isPooled = buffer.byteLength === Buffer.poolSize && byteOffset > 0
  if (!isPooled) buffer.transfer(0)
}
