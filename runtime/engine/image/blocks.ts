/** The interface of decoders: decoded image content, pulled piece by piece by the writer. */

/**
 * `bytes` of data were put at the start of the buffer, a run of zeros of that length comes next, or
 * as much of the disk already holds what it should.
 */
export type Piece =
  | { readonly kind: 'data'; readonly bytes: number }
  | { readonly kind: 'zeros'; readonly bytes: number }
  | { readonly kind: 'kept'; readonly bytes: number }

export interface Blocks extends AsyncDisposable {
  /**
   * The next piece in image order. Data is 1 to `into.length` bytes, written to the start of `into`;
   * a run of zeros has any length and leaves `into` untouched, as does what is kept. Null only after the image's true end:
   * a damaged, short or trailing stream is a Fault `image-broken` or `source-broken` instead.
   */
  next(into: Buffer): Promise<Piece | null>
}
