/** Moves chunks into a stream one at a time, and gives their memory back, so that few are alive at once. */
import type { Writable } from 'node:stream'

/**
 * Writes every chunk and ends the stream. The next chunk is asked for only when the stream is done
 * with the last one, so a source may use its memory again. Rejects when either side fails.
 */
export async function feed(chunks: AsyncIterable<Buffer>, into: Writable): Promise<void> {
  for await (const chunk of chunks) {
    await new Promise<void>((resolve, reject) => {
      into.write(chunk, (error) => (error ? reject(error) : resolve()))
    })
  }
  into.end()
}

/**
 * Gives the memory of a used-up chunk back at once: left to the garbage collector, some 64 MiB of
 * them would pile up. Only for chunks that belong to nobody else, and only with the last part of
 * the memory behind them, as a decoder cuts several chunks out of one piece.
 */
export function release(chunk: Buffer): void {
  const { buffer, byteOffset, length } = chunk
  const isOwn = buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize
  if (isOwn && byteOffset + length === buffer.byteLength) buffer.transfer(0)
}
