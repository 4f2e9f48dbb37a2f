/** Stores a captured image in a registry while it is made, and reads the disk again where the registry forgets it. */
import { PACKED_FORMAT } from '#appliance/disk-images.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createRegistryWriter, type RepositoryWriter } from '#kit/net/registry/registry-writer.ts'
import { renderImageManifest } from '#kit/net/registry/rules/oras-manifest.ts'
import { renderOrasRef, type OrasRef } from '#kit/net/registry/rules/oras.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { WrittenFrames } from '#engine/image/frame/frame-writer.ts'
import { createBlobSender, type SentBlob } from '#engine/pack/blob-sender.ts'
import type { CaptureSink } from './capturer.ts'

interface RegistryOrder {
  /** A tag that is not there yet. */
  readonly ref: OrasRef
  /** Names proxies, FLASHER_CA_FILE, FLASHER_REGISTRY_HTTP and where credentials are. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** Gets the digest of the manifest when all is stored. */
  readonly onStored: (manifest: string) => void
  /** The registry has forgotten the upload, and the disk is read again. */
  readonly onAgain: () => void
  /** The registry sends no parts of an image: nothing was read back. */
  readonly onUnread: () => void
  /** Milliseconds before the first retry. */
  readonly retryMs?: number
}

/** Reads of the disk for a registry that forgets what it got. */
const MAX_BEGINNINGS = 3
const STALL_MS = 60_000

/** A Fault `conflict` if the name is taken, another if the registry cannot be asked. */
export async function checkNoTag(
  order: Pick<RegistryOrder, 'ref' | 'env' | 'signal' | 'retryMs'>,
): Promise<void> {
  await using registry = createRegistryWriter({ retryMs: 500, ...order, stallMs: STALL_MS })
  const writer = await registry.open(order.ref)
  if (!(await writer.hasManifest())) return
  throw new Fault('conflict', `${renderOrasRef(order.ref)} exists already`, {
    hint: 'Choose another tag, or remove it first.',
  })
}

/** Rejects with a Fault where the registry refuses the image or does not hold what it was sent. */
export const toRegistry =
  (order: RegistryOrder): CaptureSink =>
  async (write) => {
    await using registry = createRegistryWriter({ retryMs: 500, ...order, stallMs: STALL_MS })
    const writer = await registry.open(order.ref)
    await writer.putConfig()
    for (let begun = 1; begun <= MAX_BEGINNINGS; begun += 1) {
      const frames = await storeOnce(writer, order, write)
      if (frames !== null) return frames
      if (begun < MAX_BEGINNINGS) order.onAgain()
    }
    throw new Fault('upstream-failed', `the registry lost the upload ${MAX_BEGINNINGS} times`, {
      hint: 'It does not keep interrupted uploads. Capture to a file, then use flasher push.',
    })
  }

/** Null: the registry has forgotten the upload. */
async function storeOnce(
  writer: RepositoryWriter,
  { ref, onStored, onUnread }: RegistryOrder,
  write: Parameters<CaptureSink>[0],
): Promise<WrittenFrames | null> {
  const upload = await writer.upload(() => undefined)
  const sender = createBlobSender(upload)
  const lost = new Fault('upstream-failed', 'the registry has forgotten the upload')
  try {
    const frames = await write(async (bytes) => {
      if (!(await sender.put(bytes))) throw lost
    })
    const blob = await sender.end()
    if (blob === null || !(await isStored(writer, upload, blob))) return null
    if (!(await writer.compare(blob, blob.samples))) onUnread()
    const { sha256, indexSha256 } = frames
    const name = ref.repository.split('/').at(-1) ?? ''
    const { sizeBytes } = blob
    const image = { sha256, sizeBytes, indexSha256, format: PACKED_FORMAT, arch: null, name }
    const manifest = await writer.putManifest(renderImageManifest(image))
    if (manifest === null) return null
    onStored(manifest)
    return frames
  } catch (thrown) {
    if (thrown === lost) return null
    await upload.drop()
    throw thrown
  }
}

async function isStored(
  writer: RepositoryWriter,
  upload: Awaited<ReturnType<RepositoryWriter['upload']>>,
  blob: SentBlob,
): Promise<boolean> {
  const isThere = () => writer.hasBlob(blob)
  return (await upload.finish(blob.digest, isThere)) === 'sent' && (await isThere())
}
