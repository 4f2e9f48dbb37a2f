/** Fills whole buffers from pieces, and passes long runs of zeros on without allocating them. */
import type { Blocks } from './blocks.ts'

export type Filler = ReturnType<typeof createFiller>

export function createFiller(blocks: Blocks) {
  let zeros = 0
  let ended = false
  return {
    /** Fills the buffer from the image's next bytes; fewer than its length only at the image's end. */
    async fill(into: Buffer): Promise<number> {
      let at = 0
      while (at < into.length && !(ended && zeros === 0)) {
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
        else at += piece.bytes
      }
      return at
    },
    /** Takes the part of a known run of zeros that comes next, at most `limit` bytes; 0: none known. */
    takeZeros(limit: number): number {
      const bytes = Math.min(zeros, limit)
      zeros -= bytes
      return bytes
    },
  }
}
