/** Parses a registry's manifests: which layer is the disk image, and for which architecture. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isDigest } from './oras.ts'
import { parseEach } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

// Renders what our manifests say of an image: its index, format, architecture and name.

/** The keys of the annotations, at the layer and at the manifest. */
const IMAGE_ANNOTATIONS = {
  indexSha256: 'vnd.flasher.index_sha256',
  format: 'vnd.flasher.format',
  arch: 'vnd.flasher.arch',
  name: 'vnd.flasher.name',
} as const

const TITLE_ANNOTATION = 'org.opencontainers.image.title'

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

/** The same at each push of the same bytes: it says nothing of when or where it was made. */
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

/** What is asked for; registries leave out what is not listed. */
export const MANIFEST_TYPES = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
] as const

export interface OrasLayer {
  readonly digest: string
  /** The size that the manifest declares. */
  readonly sizeBytes: number | null
  /** The file's name, as one harmless part of a path. */
  readonly title: string | null
  /** The digest of the body of its index, 64 hexadecimal digits; null: the manifest says none. */
  readonly indexSha256: string | null
}

type OrasManifest =
  | { readonly kind: 'image'; readonly layer: OrasLayer }
  /** Go on with the manifest of this digest. */
  | { readonly kind: 'index'; readonly digest: string }
  /** Several that nothing tells apart, by digest. */
  | { readonly kind: 'several'; readonly arch: string; readonly digests: readonly string[] }

const MAX_LAYERS = 10_000
const SIDECAR = /\.(sha256|sha512|sig|asc|pem|cert|sbom|att|json)$/i
const NO_IMAGE =
  /^application\/(vnd\.cncf\.helm\.|vnd\.dev\.cosign\.|vnd\.dev\.sigstore\.|vnd\.in-toto|vnd\.dsse|vnd\.cyclonedx|vnd\.oci\.empty\.|spdx)|^text\/spdx|^application\/vnd\.spdx/i

const Text = z.string().max(4096).catch('')
const Size = z.int().nonnegative().nullable().catch(null)
const List = z.array(z.unknown()).max(MAX_LAYERS)
const ManifestLayer = z.object({
  mediaType: Text,
  digest: Text,
  size: Size,
  annotations: z
    .object({
      [TITLE_ANNOTATION]: Text,
      [IMAGE_ANNOTATIONS.indexSha256]: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .nullable()
        .catch(null),
    })
    .transform((all) => ({
      title: all[TITLE_ANNOTATION],
      indexSha256: all[IMAGE_ANNOTATIONS.indexSha256],
    }))
    .catch({ title: '', indexSha256: null }),
})
const Platform = z
  .object({ architecture: Text, os: Text, variant: Text })
  .catch({ architecture: '', os: '', variant: '' })
const PlatformManifest = z.object({ digest: Text, platform: Platform })
const Manifest = z.object({ layers: List.optional(), manifests: List.optional() })

type ManifestLayer = z.infer<typeof ManifestLayer>
type PlatformManifest = z.infer<typeof PlatformManifest>

interface ManifestSelection {
  /** As any of us spells it (`x86_64`, `amd64`); null: only what leaves no choice, else `ownArch`. */
  readonly arch: string | null
  readonly ownArch: string
  /** Prefers the layer of such a name to the largest. */
  readonly title?: RegExp | undefined
}

/** A refusal says in words why there is nothing to take. */
export function parseManifestBody(
  text: string,
  { arch, ownArch, title }: ManifestSelection,
): Result<OrasManifest, string> {
  const parsed = Manifest.safeParse(parseJson(text))
  if (!parsed.success) return refuse('its manifest is not one that we know')
  const { layers, manifests } = parsed.data
  if (manifests !== undefined && layers === undefined) {
    return chooseManifest(parseEach(PlatformManifest, manifests), arch, ownArch)
  }
  return chooseLayer(parseEach(ManifestLayer, layers ?? []), title)
}

/** Returns the name that registries use (`amd64`) for any of ours. */
export function registryArch(arch: string): string {
  const name = arch.trim().toLowerCase()
  return new Map(ARCH_NAMES).get(name) ?? name
}

const ARCH_NAMES: readonly (readonly [string, string])[] = [
  ['x86_64', 'amd64'],
  ['x86-64', 'amd64'],
  ['x64', 'amd64'],
  ['aarch64', 'arm64'],
  ['i386', '386'],
  ['i686', '386'],
  ['ia32', '386'],
  ['armhf', 'arm'],
  ['armv7l', 'arm'],
]

function chooseManifest(
  choices: readonly PlatformManifest[],
  arch: string | null,
  ownArch: string,
): Result<OrasManifest, string> {
  // Attestations beside the images call their platform `unknown`.
  const images = choices.filter(({ platform }) => platform.architecture !== 'unknown')
  const wanted = registryArch(arch ?? ownArch)
  const sole = images.length === 1 ? images : []
  const isSoleGood = arch === null || sole[0]?.platform.architecture === ''
  const fitting = [
    images.filter(({ platform }) => registryArch(platform.architecture) === wanted),
    images.filter(({ platform }) => platform.architecture === ''),
    isSoleGood ? sole : [],
  ].find(({ length }) => length > 0)
  if (fitting === undefined) {
    return refuse(`it holds no image for ${wanted} (${listArchs(images) || 'none at all'})`)
  }
  return takeOne(wanted, [...new Set(narrow(fitting).map(({ digest }) => digest))])
}

function takeOne(arch: string, digests: readonly string[]): Result<OrasManifest, string> {
  const [digest = '', ...others] = digests
  if (!digests.every(isDigest)) return NO_DIGEST
  return accept(
    others.length === 0 ? { kind: 'index', digest } : { kind: 'several', arch, digests },
  )
}

/** Linux before other systems, and what every processor of its kind runs before what some run. */
function narrow(images: readonly PlatformManifest[]): readonly PlatformManifest[] {
  const prefer = (all: readonly PlatformManifest[], isGood: (one: PlatformManifest) => boolean) => {
    const good = all.filter(isGood)
    return good.length === 0 ? all : good
  }
  const ofLinux = prefer(images, ({ platform }) => platform.os === 'linux')
  return prefer(ofLinux, ({ platform: { architecture, variant } }) =>
    ['', BASELINES.get(registryArch(architecture))].includes(variant),
  )
}

/** The variants that the others extend. */
const BASELINES: ReadonlyMap<string, string> = new Map([
  ['amd64', 'v1'],
  ['arm64', 'v8'],
])

/** The largest of what is no signature, checksum or description. */
function chooseLayer(
  layers: readonly ManifestLayer[],
  title: RegExp | undefined,
): Result<OrasManifest, string> {
  if (layers.length === 0) return refuse('its manifest lists no layers')
  const candidates = layers.filter(({ mediaType }) => !NO_IMAGE.test(mediaType))
  if (candidates.length === 0) return refuse('it is a non-disk-image artifact')
  const images = candidates.filter(({ annotations }) => !SIDECAR.test(annotations.title))
  const named = images.filter(({ annotations }) => title?.test(annotations.title) === true)
  const chosen = largest([named, images].find(({ length }) => length > 0) ?? candidates)
  if (!isDigest(chosen?.digest ?? '') || chosen === undefined) return NO_DIGEST
  const { digest, size, annotations } = chosen
  return accept({
    kind: 'image',
    layer: {
      digest,
      sizeBytes: size,
      title: cleanTitle(annotations.title),
      indexSha256: annotations.indexSha256,
    },
  })
}

const NO_DIGEST = refuse('its manifest names no sha256 digest')

const largest = (layers: readonly ManifestLayer[]): ManifestLayer | undefined =>
  layers.toSorted((one, other) => (other.size ?? 0) - (one.size ?? 0))[0]

function cleanTitle(title: string): string | null {
  const name = (title.split(/[/\\]/).at(-1) ?? '').replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '').trim()
  return name === '' || name === '.' || name === '..' ? null : name.slice(-255)
}

const listArchs = (images: readonly PlatformManifest[]) =>
  [...new Set(images.map(({ platform }) => platform.architecture))]
    .filter((name) => /^[\w.-]{1,32}$/.test(name))
    .slice(0, 20)
    .join(', ')

/** `{}`, and its descriptor. */
export const EMPTY_CONFIG = {
  bytes: '{}',
  descriptor: {
    mediaType: 'application/vnd.oci.empty.v1+json',
    digest: 'sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a',
    size: 2,
  },
} as const
