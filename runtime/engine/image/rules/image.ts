/** What is known of one disk image, and where images lie ("Recognised image formats"). */
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Sent } from '#kit/net/rules/http-range.ts'

export type VirtualSize =
  | { readonly kind: 'exact'; readonly bytes: number }
  /** gzip keeps its size modulo 4 GiB. */
  | { readonly kind: 'at-least'; readonly bytes: number }
  | { readonly kind: 'unknown' }

/** For JSON documents: null unless exact. */
export const exactBytes = (virtual: VirtualSize): number | null =>
  virtual.kind === 'exact' ? virtual.bytes : null

/** 0: unknown. */
export const leastBytes = (virtual: VirtualSize) => (virtual.kind === 'unknown' ? 0 : virtual.bytes)

/** `name` is safe to show (no credentials). */
export interface ImageFacts {
  readonly name: string
  readonly path: string | null
  readonly url: string | null
  readonly format: ImageFormat | null
  /** As stored; null: the source does not say (standard input, some servers). */
  readonly sizeBytes: number | null
  readonly virtual: VirtualSize
  readonly notes?: readonly string[]
  readonly isCut?: boolean
  /** As stored, by a catalog. */
  readonly expectedBytes?: number
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean
  readonly sent?: Sent
}

/** `flasher list images --json`, spelled as in the specification ("ImageEntry"). */
export interface ImageRow {
  readonly name: string
  readonly path: string
  readonly format: ImageFormat
  readonly size_bytes: number
}

/** `flasher inspect image`, spelled as in the specification ("Image info"). */
export interface ImageInfo {
  readonly path: string
  /** By name, else by content; null: a folder, or none that we write. */
  readonly format: ImageFormat | null
  readonly size_bytes: number
  /** Once decoded; null: the file does not say exactly. */
  readonly virtual_size_bytes: number | null
  /** Only where there is no more than a lower bound. */
  readonly virtual_size_at_least_bytes?: number
  /** Only with frames that can be entered (docs/image-format.md). */
  readonly frames?: {
    readonly count: number
    /** The rest is known only with an index. */
    readonly zero_count?: number
    readonly image_sha256?: string
    readonly index_sha256?: string
  }
  /** Of the format's tool: an object for qcow2, text for zst and xz. */
  readonly detail?: Readonly<Record<string, unknown>> | string
  /** Why there is no detail, or why the file cannot be written. */
  readonly detail_error?: string
}

// Answers questions about a file by a few short reads: each step returns the next read or the result.

/** The reader decides how many steps are worth it; `stopped`: the answer when it reads no more. */
export type RangeStep =
  | {
      readonly kind: 'read'
      readonly at: number
      /** At least 1. */
      readonly length: number
      take(bytes: Buffer): RangeStep
      readonly stopped: VirtualSize
    }
  | {
      readonly kind: 'known'
      readonly virtual: VirtualSize
      readonly note?: string
    }
  /** A clause behind the image's name. */
  | { readonly kind: 'refused'; readonly refusal: string }

export const UNKNOWN_SIZE = { kind: 'unknown' } as const satisfies VirtualSize

/** A bound of 0 is no bound. */
export const atLeast = (bytes: number): VirtualSize =>
  bytes > 0 ? { kind: 'at-least', bytes } : UNKNOWN_SIZE

export const reading = (
  [at, length]: readonly [at: number, length: number],
  stopped: VirtualSize,
  take: (bytes: Buffer) => RangeStep,
): RangeStep => ({ kind: 'read', at, length, stopped, take })

export const known = (virtual: VirtualSize, note?: string) =>
  ({ kind: 'known', virtual, ...(note === undefined ? {} : { note }) }) as const
export const refused = (refusal: string) => ({ kind: 'refused', refusal }) as const
