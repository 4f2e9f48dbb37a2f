/** What is known of one disk image, and where images lie ("Recognised image formats"). */
import type { ImageFormat } from '../../../../appliance/disk-images.ts'
import type { Sent } from '../../../kit/net/rules/sent.ts'

/** How many bytes an image holds once decoded. */
export type VirtualSize =
  | { readonly kind: 'exact'; readonly bytes: number }
  /** The format cannot say: at least so many (gzip keeps its size modulo 4 GiB). */
  | { readonly kind: 'at-least'; readonly bytes: number }
  | { readonly kind: 'unknown' }

/** As the JSON documents give it: a number only where it is exact, else null. */
export const exactBytes = (virtual: VirtualSize): number | null =>
  virtual.kind === 'exact' ? virtual.bytes : null

/** 0 where nothing is known. */
export const leastBytes = (virtual: VirtualSize) => (virtual.kind === 'unknown' ? 0 : virtual.bytes)

/** One image as a flash plan needs it; `name` is safe to show (no credentials). */
export interface ImageFacts {
  readonly name: string
  readonly path: string | null
  readonly url: string | null
  readonly format: ImageFormat | null
  /** Bytes as stored; null where the source does not say (standard input, some servers). */
  readonly sizeBytes: number | null
  readonly virtual: VirtualSize
  /** What a person should know of its content; absent: nothing is. */
  readonly notes?: readonly string[]
  /** Its own partition table says that it ends too early. */
  readonly isCut?: boolean
  /** Bytes as stored, as a catalog says; absent: none does. */
  readonly expectedBytes?: number
  /** Somebody said that it is written whatever it looks like. */
  readonly anyContent?: boolean
  /** What a web server says of the bytes; absent where none was asked. */
  readonly sent?: Sent
}

/** One row of `flasher list images --json`; the spelling is the spec's ("ImageEntry"). */
export interface ImageRow {
  readonly name: string
  /** The root as it was given, joined with the name. */
  readonly path: string
  readonly format: ImageFormat
  readonly size_bytes: number
}

/** What an index, or at least a seek table, says of the frames of a file. */
interface FramesInfo {
  readonly count: number
  /** The rest is known only where there is an index. */
  readonly zero_count?: number
  readonly image_sha256?: string
  readonly index_sha256?: string
}

/** What `flasher inspect image` shows of one file; the spelling is the spec's ("Image info"). */
export interface ImageInfo {
  readonly path: string
  /** By the name, else by the content; null for a folder and for what we do not write. */
  readonly format: ImageFormat | null
  readonly size_bytes: number
  /** Bytes once decoded; null unless the file says exactly. */
  readonly virtual_size_bytes: number | null
  /** Only where the file gives no more than a lower bound. */
  readonly virtual_size_at_least_bytes?: number
  /** Only where the file can be entered at frames of its own (docs/image-format.md). */
  readonly frames?: FramesInfo
  /** The format's own tool: an object for qcow2, text for zst and xz. */
  readonly detail?: Readonly<Record<string, unknown>> | string
  /** Why there is no detail, or why the file cannot be written. */
  readonly detail_error?: string
}
