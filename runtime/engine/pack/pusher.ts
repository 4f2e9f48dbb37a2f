/** Pushes an image to a registry: packed where it is not yet, sent in chunks, and what arrived verified. */
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PACKED_FORMAT } from '#appliance/disk-images.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createShell } from '#kit/host/shell.ts'
import { report, untilAborted } from '#kit/host/watch.ts'
import { createRegistryWriter, type RepositoryWriter } from '#kit/net/registry/registry-writer.ts'
import { renderImageManifest, type StoredImage } from '#kit/net/registry/rules/oras-manifest.ts'
import { createMeter } from '#engine/flash/meter.ts'
import { checkImage } from '#engine/image/image-inspection.ts'
import type { WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { createDecoders } from '#engine/image/formats.ts'
import { checkFrames } from '#engine/image/frame/frame-check.ts'
import { readFrameMap } from '#engine/image/zstd-decoder.ts'
import { createImages } from '#engine/image/images.ts'
import { compareDigest, openFileSource, type Source } from '#engine/image/sources/source.ts'
import { createSources, type SourcesOptions } from '#engine/image/sources/sources.ts'
import { createBlobSender } from './blob-sender.ts'
import { packImage } from './packer.ts'
import type { Pushed, PushOrder, PushStage } from './rules/push.ts'

interface PushOptions {
  readonly signal: AbortSignal
  readonly onStage: (stage: PushStage) => void
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
  /** Milliseconds before the first retry. */
  readonly retryMs?: number
}

/** Restarts of an upload that its registry has forgotten. */
const MAX_BEGINNINGS = 3
const TICK_MS = 250
const STALL_MS = 60_000

/**
 * Rejects with a Fault for a bad image, or where the registry refuses, is silent or does not hold
 * what it was sent; its tag stays then.
 */
export async function pushImage(
  given: SourcesOptions,
  order: PushOrder,
  options: PushOptions,
): Promise<Pushed> {
  const before = performance.now()
  const { signal, retryMs = 500 } = options
  await using undo = new AsyncDisposableStack()
  const { env } = given
  const registry = undo.use(createRegistryWriter({ env, signal, stallMs: STALL_MS, retryMs }))
  const writer = await registry.open(order.ref)
  // A login that may not write shows here, not after minutes of packing.
  await writer.putConfig()
  const framed = await findFrames(given, order, options)
  const packed = framed ?? (await packAside(given, order, options, undo))
  const source = undo.use(await openFileSource(packed.path, signal))
  const { name, arch } = order
  const { sha256, indexSha256 } = packed
  const sizeBytes = source.sizeBytes ?? 0
  const image = { sha256, sizeBytes, indexSha256, format: PACKED_FORMAT, arch, name }
  const stored = await store(writer, source, image, options)
  return {
    ...image,
    ...stored,
    isPacked: framed === null,
    seconds: (performance.now() - before) / 1000,
  }
}

interface FramedFile {
  readonly path: string
  readonly sha256: string
  readonly indexSha256: string
}

/** Null: the image has to be packed. Its frames are checked, as its index is vouched for. */
async function findFrames(
  given: SourcesOptions,
  order: PushOrder,
  { signal, onStage, onProgress }: PushOptions,
): Promise<FramedFile | null> {
  // Standard input can be read once only.
  if (order.image === '-') return null
  await using source = await createSources(given).open(order.image, { signal })
  const { path, readAt, sizeBytes } = source
  if (path === null || readAt === null) return null
  const shell = createShell(given)
  const tools = { images: createImages({ shell }), decoders: createDecoders({ shell }) }
  const { image, imageProblem, sha256: expected } = await checkImage(source, order, tools, signal)
  if (imageProblem !== null) throw new Fault('plan-refused', imageProblem)
  if (image.format !== PACKED_FORMAT) return null
  const map = await readFrameMap({ ...source, readAt })
  if (map === null || map.indexSha256 === null) return null
  onStage('checking')
  const meter = createMeter({
    phase: 'verify',
    totalBytes: map.bytes,
    sourceBytes: sizeBytes,
    bytesRead: () => sizeBytes ?? 0,
  })
  let checked = 0
  const onChecked = (bytes: number) => {
    meter.add(bytes - checked)
    checked = bytes
  }
  const frames = { map, source: { ...source, readAt }, signal, onChecked, threads: 2 }
  await report(untilAborted(signal, checkFrames(frames)), TICK_MS, meter.snapshot, onProgress)
  const hash = createHash('sha256')
  for await (const chunk of source.stream()) hash.update(chunk)
  const sha256 = hash.digest('hex')
  compareDigest(source, sha256, expected)
  return { path, sha256, indexSha256: map.indexSha256 }
}

async function packAside(
  given: SourcesOptions,
  order: PushOrder,
  { signal, onStage, onProgress }: PushOptions,
  undo: AsyncDisposableStack,
): Promise<FramedFile> {
  onStage('packing')
  const folder = await mkdtemp(join(given.env['TMPDIR'] || '/var/tmp', 'flasher-push-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  const path = join(folder, 'packed.img.zst')
  const { sha256, indexSha256 } = await packImage(
    given,
    { ...order, output: path },
    { signal, onProgress },
  )
  return { path, sha256, indexSha256 }
}

/** What the registry collects between image and manifest is sent once more. */
async function store(
  writer: RepositoryWriter,
  source: Source,
  image: StoredImage,
  options: PushOptions,
) {
  const blob = { digest: `sha256:${image.sha256}`, sizeBytes: image.sizeBytes }
  const text = renderImageManifest(image)
  let wasThere = true
  for (let begun = 1; begun <= MAX_BEGINNINGS; begun += 1) {
    const isThere = await writer.hasBlob(blob)
    if (!isThere) {
      wasThere = false
      options.onStage(begun === 1 ? 'uploading' : 'again')
      if (!(await send(writer, source, blob, options))) continue
    }
    const hasRanges = await compareEnds(writer, source, blob)
    await writer.putConfig()
    const manifest = await writer.putManifest(text)
    if (manifest !== null) return { manifest, wasThere, hasRanges }
  }
  throw new Fault('upstream-failed', `the registry lost the upload ${MAX_BEGINNINGS} times`, {
    hint: 'It does not keep interrupted uploads. Push from a host closer to it.',
  })
}

/** False: the registry has forgotten the upload. */
async function send(
  writer: RepositoryWriter,
  source: Source,
  blob: Parameters<RepositoryWriter['hasBlob']>[0],
  { signal, onProgress }: PushOptions,
): Promise<boolean> {
  const { sizeBytes } = blob
  let sent = 0
  const bytesRead = () => sent
  const meter = createMeter({ phase: 'write', totalBytes: sizeBytes, sourceBytes: null, bytesRead })
  const upload = await writer.upload((bytes) => {
    meter.add(bytes - sent)
    sent = bytes
  })
  const sending = async () => {
    const sender = createBlobSender(upload)
    for await (const chunk of source.stream()) if (!(await sender.put(chunk))) return false
    const whole = await sender.end()
    if (whole === null) return false
    if (whole.digest !== blob.digest) {
      throw new Fault('source-broken', `${source.name}: it changed while it was read`)
    }
    return (await upload.finish(blob.digest, () => writer.hasBlob(blob))) === 'sent'
  }
  try {
    return await report(untilAborted(signal, sending()), TICK_MS, meter.snapshot, onProgress)
  } catch (thrown) {
    await upload.drop()
    throw thrown
  }
}

const SAMPLE_BYTES = 64 * 1024

async function compareEnds(
  writer: RepositoryWriter,
  { readAt }: Source,
  blob: Parameters<RepositoryWriter['hasBlob']>[0],
): Promise<boolean> {
  const length = Math.min(SAMPLE_BYTES, blob.sizeBytes)
  const samples = []
  for (const at of new Set([0, blob.sizeBytes - length])) {
    const bytes = Buffer.alloc(length)
    await readAt?.(bytes, at)
    samples.push({ at, bytes })
  }
  return await writer.compare(blob, samples)
}
