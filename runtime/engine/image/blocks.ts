/** The interface of decoders: decoded image content, pulled piece by piece by the writer. */

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
