/** What a person chose for a capture, and how it ended. Pure. */
import type { IdentityFiles } from '../../../engine/capture/rules/capture.ts'

/** Where the image goes. */
export type CapturePlace =
  | { readonly kind: 'file'; readonly path: string }
  | {
      readonly kind: 'upload'
      /** As `toUpload` takes it: where uploads are begun. */
      readonly base: string
      readonly name: string
      /** Null: not typed yet. */
      readonly token: string | null
    }

export type CaptureOutcome =
  | {
      readonly kind: 'done'
      readonly storedBytes: number
      readonly imageBytes: number
      readonly sha256: string
      readonly seconds: number
      /** The machine's identity that is left in the image. */
      readonly identity: IdentityFiles
    }
  | {
      readonly kind: 'failed' | 'cancelled'
      readonly reason: string
      readonly hint: string | null
    }

/** Renders where an image goes for a header, without the token. */
export const renderPlace = (place: CapturePlace): string =>
  place.kind === 'file' ? place.path : `${place.base}/${encodeURIComponent(place.name)}`
