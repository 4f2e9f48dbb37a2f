/** The interface of an opened image source: its bytes in order or at an offset, wherever it is stored. */
import type { SourceShare } from '../rules/frame-map.ts'
import type { Sent } from '#kit/net/rules/http-range.ts'

/** Offsets and lengths are bytes. */
export interface Source extends AsyncDisposable {
  /** To be shown: a path, `-`, or a URL without credentials. */
  readonly name: string
  /** The last part of path or URL, which shows the format. */
  readonly fileName: string
  readonly path: string | null
  /** To be shown only: without credentials. */
  readonly url: string | null
  /** Null: the source does not say. */
  readonly sizeBytes: number | null
  /** An ETag or a date. */
  readonly version?: string | null
  /** Of all bytes, lower case, as the source promises. */
  readonly sha256?: string
  /** Of its index, lower case, by whoever promises `sha256`. */
  readonly indexSha256?: string
  /** All promises were named by a digest, too. */
  readonly isPinned?: boolean
  readonly sent?: Sent
  readonly isNameless?: boolean
  /** As the server says now: it may rule the bytes out, and vouches for nothing. */
  readonly servedSha256?: string
  /** Fewer bytes only at the end; several calls at once. Null: no random access. */
  readonly readAt: ((into: Buffer, offset: number) => Promise<number>) | null
  /**
   * Recovers what it can, else throws a Fault. Once for stdin. A chunk's memory may be reused at
   * the next one.
   */
  stream(from?: number): AsyncIterable<Buffer>
  /** Goes on at another place where one breaks: only for who compares the digest of all bytes. */
  joined?(from?: number): AsyncIterable<Buffer>
  /** In the order of asking; absent: here alone. */
  readonly places?: readonly ListedSource[]
  /**
   * Each place by itself with the patience of an only source, this one's first: for who reads all
   * of it from one. Absent: an only source.
   */
  readonly alone?: readonly (() => Promise<Source>)[]
  /** Absent: all came from here. */
  shares?(): readonly SourceShare[]
}

export type SeekableSource = Source & { readonly readAt: NonNullable<Source['readAt']> }

export interface ListedSource extends Pick<SeekableSource, 'name' | 'sizeBytes' | 'readAt'> {
  taken(bytes: number): void
  /** Notes why what it sent was of no use, or why it sent nothing. */
  refused(why: unknown): void
}

export interface OpenOptions {
  /** Ends every wait with a Fault `cancelled`. */
  readonly signal?: AbortSignal | undefined
  /** For a registry that holds several; null: the only one, else this machine's. */
  readonly arch?: string | null | undefined
  /** Another place has the same bytes: this one is given up soon, even when it is only slow. */
  readonly isHasty?: boolean
  /** A new address for a signed one that has expired. */
  readonly renew?: ((location: string) => Promise<string | null>) | undefined
}
