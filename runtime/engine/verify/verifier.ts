/** Compares a disk with an image, byte by byte, and writes nothing. */
import type { ImageFormat } from '#appliance/disk-images.ts'
import { decideSource } from '#engine/capture/rules/capture.ts'
import { createSlot, type Device, openDevice } from '#engine/disk/device.ts'
import { parsePartitions, parseTableSector } from '#engine/disk/rules/partition-tables.ts'
import { type CheckedImage, checkImage } from '#engine/image/image-inspection.ts'
import { exactBytes } from '#engine/image/rules/image.ts'
import { createFiller, type Filler } from '#engine/image/stream-blocks.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { renderExactSize } from '#kit/foundation/size.ts'
import { report, untilAborted } from '#kit/host/watch.ts'
import { createTools, type FlasherOptions } from '#engine/flash/flash-planner.ts'
import { openImage } from '#engine/flash/image-stream.ts'
import { createMeter, createWaits } from '#engine/flash/meter.ts'
import { createTally, type Tally, type Verified } from './rules/disk-comparison.ts'
import type { WriteProgress } from '#engine/flash/rules/flash-plan.ts'

interface VerifyOrder {
  /** A path, `-`, an address or a reference, as for a flash. */
  readonly image: string
  readonly disk: string
  /** Null: by the name or the content. */
  readonly format: ImageFormat | null
  /** 64 hexadecimal digits, of the image's file; null: from `IMAGE.sha256`, if it exists. */
  readonly sha256: string | null
}

interface VerifyOptions {
  readonly signal: AbortSignal
  readonly onProgress: (progress: { readonly event: 'writing' } & WriteProgress) => void
}

const TICK_MS = 250
/** The first MiB holds the table. */
const SLOT_BYTES = 1024 * 1024
/** Pieces of which image and disk are read side by side. */
const SLOTS = 4

/**
 * The disk is opened read-only and held alone until the end. Rejects with a Fault where it may not be
 * read, or image or disk cannot be read to the end; a difference is a value.
 */
export async function verifyDisk(
  given: FlasherOptions,
  order: VerifyOrder,
  { signal, onProgress }: VerifyOptions,
): Promise<Verified> {
  const before = performance.now()
  const tools = createTools(given)
  await using source = await tools.sources.open(order.image, { signal })
  const anyContent = order.format !== null && order.image !== '-'
  const checked = await checkImage(source, { ...order, anyContent, sizeBytes: null }, tools, signal)
  const plan = planReading(checked)
  await tools.decoders.check(plan.image.format)
  const imageBytes = exactBytes(plan.image.virtual)
  await using device = await openDisk(tools, order.disk, signal)
  if (imageBytes !== null && imageBytes > device.sizeBytes) throw tooShort(device, imageBytes)
  const opened = await openImage(tools.decoders, plan, source, {
    waits: createWaits(),
    signal,
    mirrors: [],
  })
  await using blocks = await untilAborted(signal, opened.open())
  const meter = createMeter({
    phase: 'verify',
    totalBytes: imageBytes,
    sourceBytes: opened.counted.source.sizeBytes,
    bytesRead: opened.counted.bytesRead,
  })
  const comparing = compareAll(createFiller(blocks), device, signal, meter.add)
  const { bytes, areas } = await report(
    untilAborted(signal, comparing),
    TICK_MS,
    meter.snapshot,
    onProgress,
  )
  opened.counted.checkDigest()
  const seconds = (performance.now() - before) / 1000
  const disk = { path: order.disk, sizeBytes: device.sizeBytes }
  return { image: plan.image, disk, bytes, areas, seconds }
}

function planReading({ image, imageProblem, imageHint, sha256, indexSha256 }: CheckedImage) {
  const { format } = image
  if (imageProblem !== null || format === null) {
    const hint = imageHint === null ? {} : { hint: imageHint }
    throw new Fault('image-broken', imageProblem ?? `${image.name} is of no known format`, hint)
  }
  return { image: { ...image, format }, sha256, indexSha256 }
}

async function openDisk(
  { disks, isRoot }: ReturnType<typeof createTools>,
  path: string,
  signal: AbortSignal,
): Promise<Device> {
  const facts = await untilAborted(signal, disks.probe(path, null))
  const decided = decideSource(facts, null, Infinity)
  if (!decided.ok) throw new Fault('plan-refused', decided.refusal.join('; '), { hint: IDLE })
  if (!isRoot) throw new Fault('root-required', 'reading a disk needs root', { hint: SUDO })
  const { node, sectorBytes, identity } = decided.value
  return await openDevice({ node, sizeBytes: identity.sizeBytes, sectorBytes, access: 'read' })
}

const IDLE = 'Name a whole disk, unmount it, and stop the programs that use it.'
const SUDO = 'Run it again as root, for example with sudo.'

const tooShort = ({ node, sizeBytes }: Device, bytes: number) =>
  new Fault(
    'plan-refused',
    `${node} is shorter than the image: ${renderExactSize(sizeBytes)} of ${renderExactSize(bytes)}`,
  )

interface Pair {
  readonly image: Buffer
  readonly disk: Buffer
}

async function compareAll(
  filler: Filler,
  device: Device,
  signal: AbortSignal,
  onCompared: (bytes: number) => void,
) {
  const free = Array.from({ length: SLOTS }, (): Pair => ({
    image: createSlot(SLOT_BYTES),
    disk: createSlot(SLOT_BYTES),
  }))
  let tally: Tally | null = null
  let end = 0
  /** Reads of the disk that are under way, in order. */
  const reading: { readonly at: number; readonly pair: Pair; readonly done: Promise<number> }[] = []
  /** Frees the pair that was read first. */
  async function finishOne(): Promise<Pair> {
    const next = reading.shift()
    if (next === undefined) throw new Error('no pair is being read')
    const bytes = await next.done
    const image = next.pair.image.subarray(0, bytes)
    tally ??= createTally(partitionsOf(image, device.sectorBytes))
    tally.compare(image, next.pair.disk.subarray(0, bytes), next.at)
    onCompared(bytes)
    return next.pair
  }
  for (;;) {
    signal.throwIfAborted()
    const pair = free.pop() ?? (await finishOne())
    const filled = await filler.fill(pair.image)
    if (filled === 0) break
    if (end + filled > device.sizeBytes) throw tooShort(device, end + filled)
    const done = readDisk(device, pair.disk, end, filled)
    // It is waited for in its turn.
    done.catch(() => {})
    reading.push({ at: end, pair, done })
    end += filled
    if (filled < SLOT_BYTES) break
  }
  while (reading.length > 0) await finishOne()
  tally ??= createTally([])
  return { bytes: end, areas: tally.finish(end) }
}

/** Direct reads take whole sectors. */
async function readDisk(device: Device, into: Buffer, at: number, bytes: number): Promise<number> {
  const whole = Math.ceil(bytes / device.sectorBytes) * device.sectorBytes
  await device.read(into.subarray(0, Math.min(whole, device.sizeBytes - at)), at)
  return bytes
}

function partitionsOf(head: Buffer, sectorBytes: number) {
  const found = parsePartitions(head, parseTableSector(head) ?? sectorBytes)
  return found.ok ? found.value : []
}
