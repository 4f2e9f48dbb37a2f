/** What is known of one disk image, and where images lie ("Recognised image formats"). */
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { Sent } from '#kit/net/rules/sent.ts'

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

interface FramesInfo {
  readonly count: number
  /** The rest is known only with an index. */
  readonly zero_count?: number
  readonly image_sha256?: string
  readonly index_sha256?: string
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
  readonly frames?: FramesInfo
  /** Of the format's tool: an object for qcow2, text for zst and xz. */
  readonly detail?: Readonly<Record<string, unknown>> | string
  /** Why there is no detail, or why the file cannot be written. */
  readonly detail_error?: string
}
