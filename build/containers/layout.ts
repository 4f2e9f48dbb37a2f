/** Container images as an OCI layout: several images over the same layers (OCI image format 1.1). */
import { createHash } from 'node:crypto'
import { CONTAINER_STATE, CONTAINER_USER } from '#appliance/containers.ts'
import { TFTP_FOLDER } from '#appliance/contract.ts'

/** A compressed archive of files, and what it is when unpacked. */
export interface Layer {
  readonly bytes: number
  /** SHA-256, in hexadecimal, of the compressed archive and of the plain one. */
  readonly digest: string
  readonly plainDigest: string
}

interface LayoutPlan {
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
  /** In the format's words: `amd64`. */
  readonly arch: string
  readonly layers: readonly Layer[]
}

/** The settings that an image starts with. */
interface Start {
  readonly User?: string
  readonly Entrypoint: readonly string[]
  readonly Env: readonly string[]
  readonly ExposedPorts: Readonly<Record<string, object>>
  readonly Volumes?: Readonly<Record<string, object>>
}

const PATH = 'PATH=/usr/sbin:/usr/bin:/sbin:/bin'

const server = (program: string, port: number): Start => ({
  User: `${CONTAINER_USER}:${CONTAINER_USER}`,
  Entrypoint: [`/usr/bin/${program}`],
  Env: [PATH, `HOME=${CONTAINER_STATE}`, `FLASHER_PATHS_STATE_DIR=${CONTAINER_STATE}`],
  ExposedPorts: { [`${port}/tcp`]: {} },
  Volumes: { [CONTAINER_STATE]: {} },
})

/** How each image starts, by the image's name. */
const CONTAINER_IMAGES: Readonly<Record<string, Start>> = {
  'flasher-web': server('flasher-web', 8080),
  'flasher-cache': server('flasher-cache', 8081),
  'flasher-tftp': {
    Entrypoint: [
      '/usr/sbin/dnsmasq',
      '--keep-in-foreground',
      '--conf-file=/dev/null',
      '--log-facility=-',
      '--port=0',
      '--user=root',
      '--enable-tftp',
      `--tftp-root=${TFTP_FOLDER}`,
    ],
    Env: [PATH],
    ExposedPorts: { '69/udp': {} },
  },
}

interface Blob {
  readonly digest: string
  readonly text: string
}

interface Layout {
  /** The layers are blobs, too, and lie beside these. */
  readonly blobs: readonly Blob[]
  /** `index.json`, which names each image. */
  readonly index: string
}

/** Renders the configuration, the manifest and the index of all images over the same layers. */
export function renderLayout(plan: LayoutPlan): Layout {
  const images = Object.entries(CONTAINER_IMAGES).map(([name, start]) => {
    const config = asBlob(renderConfig(plan, start))
    const manifest = asBlob(renderManifest(plan, config))
    return { name, blobs: [config, manifest], manifest }
  })
  const manifests = images.map(({ name, manifest }) => ({
    mediaType: MANIFEST,
    digest: `sha256:${manifest.digest}`,
    size: Buffer.byteLength(manifest.text),
    annotations: { 'org.opencontainers.image.ref.name': `${name}:${plan.version}` },
  }))
  return {
    blobs: images.flatMap(({ blobs }) => blobs),
    index: JSON.stringify({ schemaVersion: 2, mediaType: INDEX, manifests }),
  }
}

const INDEX = 'application/vnd.oci.image.index.v1+json'
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar+zstd'

const renderConfig = ({ epoch, arch, layers }: LayoutPlan, start: Start) => ({
  created: new Date(epoch * 1000).toISOString(),
  architecture: arch,
  os: 'linux',
  config: start,
  rootfs: { type: 'layers', diff_ids: layers.map(({ plainDigest }) => `sha256:${plainDigest}`) },
})

const renderManifest = ({ version, layers }: LayoutPlan, config: Blob) => ({
  schemaVersion: 2,
  mediaType: MANIFEST,
  config: {
    mediaType: CONFIG,
    digest: `sha256:${config.digest}`,
    size: Buffer.byteLength(config.text),
  },
  layers: layers.map(({ bytes, digest }) => ({
    mediaType: LAYER,
    digest: `sha256:${digest}`,
    size: bytes,
  })),
  annotations: { 'org.opencontainers.image.version': version },
})

function asBlob(value: unknown): Blob {
  const text = JSON.stringify(value)
  return { text, digest: createHash('sha256').update(text).digest('hex') }
}
