/** The interface of an opened image source: its bytes in order or at an offset, wherever it is stored. */
import type { SourceShare } from '../rules/source-share.ts'
import type { Sent } from '../../../kit/net/rules/sent.ts'

/** An opened source. Offsets and lengths are bytes. */
export interface Source extends AsyncDisposable {
  /** What to call it on screen: a path, `-`, or a URL without its credentials. */
  readonly name: string
  /** The last part of path or URL, from which the format is recognised. */
  readonly fileName: string
  readonly path: string | null
  /** Without credentials: to be shown, not to be asked. */
  readonly url: string | null
  /** Null where the source does not say. */
  readonly sizeBytes: number | null
  /** Tells one version of the bytes from another (an ETag, a date); absent where nothing does. */
  readonly version?: string | null
  /**
   * The digest of all bytes, in lower case, where the source promises one; absent where it does
   * not.
   */
  readonly sha256?: string
  /**
   * The digest of its index, in lower case, as whoever promises `sha256` says it; absent where
   * nobody does.
   */
  readonly indexSha256?: string
  /** Whoever named this source named all that it promises by a digest, too. */
  readonly isPinned?: boolean
  /** What a web server says of the bytes; absent where none was asked. */
  readonly sent?: Sent
  /** The file has no name of its own, so that its content alone tells the format. */
  readonly isNameless?: boolean
  /**
   * The digest of all bytes, in lower case, as the server says it at the moment: it tells that
   * these are not the bytes asked for, and vouches for nothing; absent where it does not say.
   */
  readonly servedSha256?: string
  /**
   * Reads up to `into.length` bytes at `offset`, fewer only at the end; null: no random access.
   * Several may be under way at once.
   */
  readonly readAt: ((into: Buffer, offset: number) => Promise<number>) | null
  /**
   * All bytes from `from` on, in order; survives what it can, else throws a Fault. Once for stdin.
   * A chunk is the reader's until it asks for the next one; then its memory may be used again.
   */
  stream(from?: number): AsyncIterable<Buffer>
  /**
   * As `stream`, but goes on at another place where one breaks: only for who compares the digest of
   * all bytes at the end. Absent: there is no other place.
   */
  joined?(from?: number): AsyncIterable<Buffer>
  /** Where the same bytes are, in the order in which they are asked for; absent: here alone. */
  readonly places?: readonly ListedSource[]
  /**
   * Open the places one by one, each for itself and with the patience of an only source: for who has
   * to read all of it from one of them. The first is this one's. Absent: it is an only source.
   */
  readonly alone?: readonly (() => Promise<Source>)[]
  /** What came from each place; absent: all came from here. */
  shares?(): readonly SourceShare[]
}

/** One that can be read anywhere. */
export type SeekableSource = Source & { readonly readAt: NonNullable<Source['readAt']> }

/** A source among others of the same image; it learns what became of the bytes that were read there. */
export interface ListedSource extends Pick<SeekableSource, 'name' | 'sizeBytes' | 'readAt'> {
  /** This counts bytes of it that are in use. */
  taken(bytes: number): void
  /** This notes why what it sent was of no use, or why it sent nothing. */
  refused(why: unknown): void
}

export interface OpenOptions {
  /** Ends every wait of this source, at once, with a Fault `cancelled`. */
  readonly signal?: AbortSignal | undefined
  /** Which image, where a registry holds several; null: the only one, else this machine's. */
  readonly arch?: string | null | undefined
  /** Another place has the same bytes: this one is given up soon, also where it is slow. */
  readonly isHasty?: boolean
  /** Returns a new address for a signed one that has expired; null: there is none. */
  readonly renew?: ((location: string) => Promise<string | null>) | undefined
}
