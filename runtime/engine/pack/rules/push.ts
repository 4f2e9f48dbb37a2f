/** What is asked of a push, how far it is, and what came of it. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import type { StoredImage } from '#kit/net/registry/rules/oras-manifest.ts'
import type { OrasRef } from '#kit/net/registry/rules/oras.ts'

export interface PushOrder {
  /** A path, `-`, an http(s) URL or an oras reference. */
  readonly image: string
  readonly ref: OrasRef
  readonly format: ImageFormat | null
  /** Somebody said that it is an image, whatever it looks like. */
  readonly anyContent?: boolean
  readonly sha256: string | null
  readonly level: number
  /** In the registry, without its format's ending. */
  readonly name: string
  readonly arch: string | null
}

export type PushStage = 'packing' | 'checking' | 'uploading' | 'again'

export interface Pushed extends StoredImage {
  readonly indexSha256: string
  /** `sha256:` and 64 hexadecimal digits. */
  readonly manifest: string
  readonly isPacked: boolean
  readonly wasThere: boolean
  /** The registry sends parts of an image, so that its frames can be read. */
  readonly hasRanges: boolean
  readonly seconds: number
}
