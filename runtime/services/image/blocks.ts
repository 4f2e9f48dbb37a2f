/** The interface of decoders: decoded image content, pulled piece by piece by the writer. */

/** `bytes` of data were put at the start of the buffer, or a run of zeros of that length comes next. */
export type Piece =
  | { readonly kind: 'data'; readonly bytes: number }
  | { readonly kind: 'zeros'; readonly bytes: number }

export interface Blocks extends AsyncDisposable {
  /**
   * The next piece in image order. Data is 1 to `into.length` bytes, written to the start of `into`;
   * a run of zeros has any length and leaves `into` untouched. Null only after the image's true end:
   * a damaged, short or trailing stream is a Fault `image-broken` or `source-broken` instead.
   */
  next(into: Buffer): Promise<Piece | null>
}
