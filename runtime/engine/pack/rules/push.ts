/** What is asked of a push, how far it is, and what came of it. */
import type { ImageFormat } from '../../../../appliance/disk-images.ts'
import type { StoredImage } from '../../../kit/net/registry/rules/image-manifest.ts'
import type { OrasRef } from '../../../kit/net/registry/rules/oras.ts'

export interface PushOrder {
  /** A path, `-`, an http(s) URL or an oras reference. */
  readonly image: string
  /** Where it goes: a tag of a repository. */
  readonly ref: OrasRef
  readonly format: ImageFormat | null
  /** Somebody said that it is an image, whatever it looks like; absent: nobody did. */
  readonly anyContent?: boolean
  readonly sha256: string | null
  readonly level: number
  /** What to call it in the registry, without what its format adds. */
  readonly name: string
  readonly arch: string | null
}

export type PushStage = 'packing' | 'checking' | 'uploading' | 'again'

export interface Pushed extends StoredImage {
  readonly indexSha256: string
  /** `sha256:` and 64 hexadecimal digits, of the manifest. */
  readonly manifest: string
  /** The image was packed for this. */
  readonly isPacked: boolean
  /** The registry had the image already, so that nothing was sent. */
  readonly wasThere: boolean
  /** The registry sends parts of an image, so that its frames can be read. */
  readonly hasRanges: boolean
  readonly seconds: number
}
