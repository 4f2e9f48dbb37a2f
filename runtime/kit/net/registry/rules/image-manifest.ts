/** Renders what our manifests say of an image: its index, format, architecture and name. */
import { EMPTY_CONFIG } from './empty-config.ts'

/** The keys of the annotations, at the layer and at the manifest. */
export const IMAGE_ANNOTATIONS = {
  indexSha256: 'vnd.flasher.index_sha256',
  format: 'vnd.flasher.format',
  arch: 'vnd.flasher.arch',
  name: 'vnd.flasher.name',
} as const

export const TITLE_ANNOTATION = 'org.opencontainers.image.title'

export interface StoredImage {
  /** 64 hexadecimal digits, of the file as stored. */
  readonly sha256: string
  readonly sizeBytes: number
  /** 64 hexadecimal digits, of the body of its index; null: it has none. */
  readonly indexSha256: string | null
  /** `img.zst`; empty: nobody said. */
  readonly format: string
  /** Null: nobody said. */
  readonly arch: string | null
  /** The name of the image, without what its format adds. */
  readonly name: string
}

export const IMAGE_MANIFEST = 'application/vnd.oci.image.manifest.v1+json'

/**
 * Renders the manifest of one image, which is the same at each push of the same bytes: it says
 * nothing of when or where it was made.
 */
export function renderImageManifest(image: StoredImage): string {
  const annotations = {
    [IMAGE_ANNOTATIONS.name]: image.name,
    ...(image.format === '' ? {} : { [IMAGE_ANNOTATIONS.format]: image.format }),
    ...(image.arch === null ? {} : { [IMAGE_ANNOTATIONS.arch]: image.arch }),
    ...(image.indexSha256 === null ? {} : { [IMAGE_ANNOTATIONS.indexSha256]: image.indexSha256 }),
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: IMAGE_MANIFEST,
    artifactType: 'application/vnd.flasher.disk-image.v1',
    config: EMPTY_CONFIG.descriptor,
    layers: [
      {
        mediaType: image.format.endsWith('.zst') ? 'application/zstd' : 'application/octet-stream',
        digest: `sha256:${image.sha256}`,
        size: image.sizeBytes,
        annotations: {
          [TITLE_ANNOTATION]: [image.name, image.format].filter(Boolean).join('.'),
          ...annotations,
        },
      },
    ],
    annotations,
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}
