/** Bytes in memory as a Source that uses each chunk's memory again as soon as it may. */
import type { Blocks } from '#engine/image/stream-blocks.ts'
import type { Source } from '#engine/image/sources/source.ts'

export interface MemorySourceOptions {
  readonly name?: string
  readonly chunkBytes?: number
  /** Thrown in place of the chunk that holds this byte. */
  readonly breaksAt?: { readonly at: number; readonly thrown: Error }
  /** The byte from which on the source never answers. */
  readonly stallsAt?: number
}

export function createMemorySource(bytes: Buffer, options: MemorySourceOptions = {}): Source {
  const { name = 'memory', chunkBytes = 60_001, breaksAt, stallsAt } = options
  return {
    name,
    fileName: name,
    path: null,
    url: null,
    sizeBytes: bytes.length,
    readAt: null,
    async *stream(from = 0) {
      const chunk = Buffer.allocUnsafeSlow(chunkBytes)
      for (let at = from; at < bytes.length; at += chunkBytes) {
        if (breaksAt !== undefined && at + chunkBytes > breaksAt.at) throw breaksAt.thrown
        if (stallsAt !== undefined && at >= stallsAt) await new Promise(() => {})
        const length = bytes.copy(chunk, 0, at)
        yield chunk.subarray(0, length)
        // Who still looks at the chunk now sees that it was wrong to.
        chunk.fill(0xa5)
      }
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

/** All that blocks give, taken in pieces of at most so many bytes. */
export async function collectBlocks(blocks: Blocks, most = 100_003): Promise<Buffer> {
  await using open = blocks
  const parts: Buffer[] = []
  const into = Buffer.alloc(most)
  for (let piece = await open.next(into); piece !== null; piece = await open.next(into)) {
    const { kind, bytes } = piece
    parts.push(kind === 'zeros' ? Buffer.alloc(bytes) : Buffer.from(into.subarray(0, bytes)))
  }
  return Buffer.concat(parts)
}
