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

// The interface of decoders: decoded image content, pulled piece by piece by the writer.

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
