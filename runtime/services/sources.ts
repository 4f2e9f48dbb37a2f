/** Where an image's bytes come from: a file, standard input or a URL, behind one interface. */

/** An opened source. Offsets and lengths are bytes. */
export interface Source extends AsyncDisposable {
  /** What to call it on screen: a path, `-`, or a URL without its credentials. */
  readonly name: string
  /** The last part of path or URL, from which the format is told. */
  readonly fileName: string
  readonly path: string | null
  /** Without credentials. */
  readonly url: string | null
  /** Null where the source does not say. */
  readonly sizeBytes: number | null
  /** Reads up to `into.length` bytes at `offset`, fewer only at the end; null: no random access. */
  readonly readAt: ((into: Buffer, offset: number) => Promise<number>) | null
  /** All bytes from `from` on, in order; survives what it can, else throws a Fault. Once for stdin. */
  stream(from?: number): AsyncIterable<Buffer>
}
