/** Where a captured image goes, and how its capture ended. */
import type { IdentityFiles } from './capture.ts'

export type CaptureDestination =
  | { readonly kind: 'file'; readonly path: string }
  | {
      readonly kind: 'upload'
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
      readonly identity: IdentityFiles
    }
  | {
      readonly kind: 'failed' | 'cancelled'
      readonly reason: string
      readonly hint: string | null
    }

export const renderDestination = (destination: CaptureDestination): string =>
  destination.kind === 'file'
    ? destination.path
    : `${destination.base}/${encodeURIComponent(destination.name)}`
