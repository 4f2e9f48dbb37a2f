/** Carries out a FlashPlan and reports each step; makes no decisions. */
import { isStoredRaw } from '../image/rules/format.ts'
import { decideBottleneck } from './rules/bottleneck.ts'
import { Fault } from '../../kit/foundation/fault.ts'
import type { FrameMap } from '../image/rules/frame-map.ts'
import type { MovedBackup } from '../disk/rules/tables/gpt.ts'
import { exactBytes, type FlashEvent, type FlashPlan } from './rules/flash.ts'
import type { Written } from './copier.ts'
import type { Counted } from './counted-source.ts'
import type { Delta } from './delta-flash.ts'
import type { Feed, OpenFeed } from './image-feed.ts'
import type { Disks } from '../disk/disks.ts'
import type { Device } from '../disk/device.ts'
import { locateEnds, planEnds, type EndPiece } from '../disk/rules/disk-end.ts'
import { clearEnds, eraseEnds, fixBackup, writeEnds } from '../disk/disk-ends.ts'
import type { EarlySeeder } from './early-seeder.ts'
import { createHolding } from './held-disk.ts'
import { readHead } from '../image/image-head-reader.ts'
import type { LastGrowth } from './rules/last-partition.ts'
import { checkLength, readEnd } from '../image/content/image-end.ts'
import { createMeter } from './meter.ts'
import { rereadPartitions } from '../disk/partition-table.ts'
import type { MountTools } from '../disk/mounts.ts'
import {
  countSlots,
  createTaskGroup,
  createSlots,
  type TaskGroup,
  type Slots,
} from './write-slots.ts'
import { bytesToVerify, verifyWritten } from './verifier.ts'
import { createWaits, type Waits } from './wait-times.ts'
import type { BeforeEnds } from './seed-writer.ts'
import { createDeadline, settle, untilAborted, watch } from '../../kit/host/watch.ts'
import { createZeroer } from './zeroer.ts'

interface WriterTools extends MountTools {
  readonly disks: Pick<Disks, 'probe'>
}

interface WriteOptions {
  readonly signal: AbortSignal
  /** Null: nothing comes between the image and its ends. */
  readonly beforeEnds?: BeforeEnds | null
  /** What `--provision` writes before the ends where it can; null: nothing. */
  readonly seedEarly?: EarlySeeder | null
  readonly onWarning?: ((words: string) => void) | undefined
}

/** Between two `writing` events. */
const TICK_MS = 250
/** How long a cancelled or failed flash waits for what is still under way. */
const CLEANUP_MS = 500

/**
 * Writes the plan's image: `started`, `writing` again and again (the first one when the first byte is
 * written), `provisioning` where something comes before the ends, `synced`, `partprobed`. A seed of
 * `--provision` that is written before the ends comes between these two and the ends, as the earlier
 * specification has the events; the kernel reads the table at the very end either way. Whatever goes
 * wrong is thrown, as a Fault, after the disk was left without partition table and boot code; so is a
 * cancel through `signal` (`cancelled`).
 */
export async function* writeImage(
  tools: WriterTools,
  plan: FlashPlan,
  openFeed: OpenFeed,
  options: WriteOptions,
): AsyncGenerator<FlashEvent> {
  const { signal } = options
  yield { event: 'started', total_bytes: exactBytes(plan.image.virtual) }
  let isTold = false
  try {
    for await (const event of write(tools, plan, openFeed, options)) {
      isTold ||= event.event === 'partprobed'
      yield event
    }
  } catch (thrown) {
    throw signal.aborted ? cancelled(plan, thrown) : thrown
  }
  if (!isTold) yield { event: 'synced' }
  await rereadPartitions(tools.shell, plan.target.node)
  if (!isTold) yield { event: 'partprobed' }
}

const cancelled = ({ target }: FlashPlan, cause: unknown) =>
  new Fault('cancelled', `cancelled while writing to ${target.path}`, { cause })

/** One flash under way. */
interface Run {
  readonly plan: FlashPlan
  readonly counted: Counted
  readonly delta: Delta
  readonly feed: Feed
  readonly head: Buffer
  /** What the table becomes with --fix-gpt. */
  readonly moved: MovedBackup | null
  /** What becomes of the last partition with --grow. */
  readonly growth: LastGrowth | null
  readonly device: Device
  /** Comes between the image and its ends; null: nothing does. */
  readonly beforeEnds: ReturnType<BeforeEnds['plan']> | null
  readonly seedEarly: EarlySeeder | null
  readonly tasks: TaskGroup
  readonly slots: Slots
  readonly waits: Waits
  readonly signal: AbortSignal
  readonly warn: WriteOptions['onWarning']
}

async function* write(
  tools: WriterTools,
  plan: FlashPlan,
  openFeed: OpenFeed,
  { signal, beforeEnds: planned = null, seedEarly = null, onWarning: warn }: WriteOptions,
): AsyncGenerator<FlashEvent> {
  const waits = createWaits()
  const opened = await untilAborted(signal, openFeed({ waits, signal }))
  const tasks = createTaskGroup()
  const slots = createSlots(countSlots(plan.image.format), opened.pool)
  const withinDeadline = createDeadline(CLEANUP_MS)
  const facts = { ...plan.target, sizeBytes: plan.target.identity.sizeBytes }
  let opening: Promise<Feed> | null = null
  const disk = createHolding(tools.disks, plan, signal)
  try {
    // What is compared must not change any more.
    const compared = plan.delta && opened.map !== null ? await disk.hold() : null
    const delta = await openDelta(plan, opened.map, compared)
    opening = opened.open(delta.comparison?.compare)
    const first = readFirst(opening, plan)
    const { feed, head } = await disk.orRaced(untilAborted(signal, first))
    const changes = await planChanges(plan, head, facts)
    const beforeEnds = planned?.plan(head, facts) ?? null
    const device = compared ?? (await disk.hold())
    await disk.check()
    signal.throwIfAborted()
    const parts = { plan, counted: opened.counted, delta, feed, head, ...changes, device }
    yield* overwrite({ ...parts, beforeEnds, seedEarly, tasks, slots, waits, signal, warn }, tools)
  } finally {
    await withinDeadline(close(opening))
    // The disk stays open for writes that are still under way after the deadline.
    await withinDeadline(tasks.land().then(disk.release, disk.release))
  }
}

async function readFirst(opening: Promise<Feed>, plan: FlashPlan) {
  const feed = await opening
  const head = await readHead(feed.filler, plan)
  checkLength(plan.image, head)
  return { feed, head }
}

const NO_DELTA: Delta = { comparison: null, report: () => ({}) }

// What few flashes need is loaded for these alone.
async function openDelta(plan: FlashPlan, map: FrameMap | null, compared: Device | null) {
  if (!plan.delta) return NO_DELTA
  const { planDelta } = await import('./delta-flash.ts')
  return planDelta(plan, map, compared)
}
const loadGrower = () => import('./grower.ts')

/** What becomes of the image's table on this disk. */
async function planChanges(
  plan: FlashPlan,
  head: Buffer,
  disk: Pick<Device, 'sizeBytes' | 'sectorBytes'>,
): Promise<Pick<Run, 'growth' | 'moved'>> {
  if (plan.grow) {
    const { planGrowth } = await loadGrower()
    const growth = planGrowth(head, disk)
    return { growth, moved: growth.moved }
  }
  return { growth: null, moved: plan.fixGpt ? fixBackup(head, disk) : null }
}

/** Also what is still being opened. */
async function close(opening: Promise<AsyncDisposable> | null) {
  const opened = await opening
  await opened?.[Symbol.asyncDispose]()
}

async function* overwrite(run: Run, tools: WriterTools): AsyncGenerator<FlashEvent> {
  const { plan, device, moved, growth, counted, beforeEnds, seedEarly, tasks, signal } = run
  const verifies = plan.verify !== 'none'
  let pieces: readonly EndPiece[] = []
  // From here on the disk's old content is lost.
  let onEnds = clearEnds(device)
  // Its failure is awaited after the event that announces it.
  onEnds.catch(() => undefined)
  let isWhole = false
  try {
    const written = yield* writeBody(run, tools, onEnds)
    const tail = await untilAborted(signal, readEnd(run, written.end))
    await untilAborted(signal, device.flush())
    const grow = growth && (await (await loadGrower()).prepareGrowth(tools, { ...run, growth }))
    if (verifies) yield* verify(run, written)
    if (beforeEnds !== null) {
      yield { event: 'provisioning', note: 'first-boot' }
      const preparing = beforeEnds({ device, verifies, signal }).then(() => device.flush())
      // A cancel does not wait for it, but the disk stays open until its tools have ended.
      tasks.launch(() => preparing)
      await untilAborted(signal, preparing)
    }
    if (grow !== null) yield* grow({ bytesRead: counted.bytesRead(), bytesWritten: written.end })
    const ends = { head: growth?.head ?? run.head, tail, moved }
    const left = seedEarly && (yield* seedEarly({ device, ends, verifies, tasks, signal }))
    pieces = left ?? planEnds(device.sizeBytes, ends)
    onEnds = writeEnds(device, pieces, verifies, signal)
    await untilAborted(signal, onEnds)
    isWhole = true
  } finally {
    // Without its ends nothing boots. What is still being written there must come before this.
    const erase = () => eraseEnds(device, pieces)
    if (!isWhole) tasks.launch(() => onEnds.then(erase, erase))
  }
}

interface Body extends Written {
  /** The image's end, or where the disk's last MiB begins. */
  readonly end: number
}

/** `cleared`: the disk's ends are, which is the first thing that is written. */
async function* writeBody(
  run: Run,
  { shell }: WriterTools,
  cleared: Promise<void>,
): AsyncGenerator<FlashEvent, Body> {
  const { plan, counted, delta, head, device, tasks, slots, waits, signal, feed } = run
  const { filler } = feed
  const meter = createMeter({
    phase: 'write',
    totalBytes: exactBytes(plan.image.virtual),
    sourceBytes: counted.source.sizeBytes,
    bytesRead: counted.bytesRead,
    bytesDone: head.length,
    isDelta: delta.comparison !== null,
    bottleneck: () => decideBottleneck(waits.look(), originOf(plan)),
  })
  yield { ...meter.look(plan.image.format), ...delta.report() }
  await untilAborted(signal, cleared)
  const { headBytes, tailStart } = locateEnds(device.sizeBytes)
  const zeroer = createZeroer(shell, device, plan.zeros)
  async function copy(): Promise<Body> {
    const { end, written } = await feed.copy({
      filler: { ...filler, fill: (into) => waits.during('filling', filler.fill(into)) },
      device,
      zeroer,
      tasks,
      slots: {
        ...slots,
        enter: () => waits.during('disk', slots.enter()),
        take: () => waits.during('disk', slots.take()),
      },
      skipZeros: plan.zeros !== 'write',
      verifies: plan.verify !== 'none',
      from: head.length,
      to: head.length < headBytes ? head.length : tailStart,
      signal,
      onWritten: meter.add,
      onKept: meter.keep,
    })
    await tasks.land()
    return { ...written, end }
  }
  try {
    const body = yield* watch(untilAborted(signal, copy()), TICK_MS, () => meter.look())
    // Where an image begins with zeros, it is decided later than at the first event.
    yield { ...meter.look(), ...delta.report() }
    return body
  } finally {
    await settle(zeroer[Symbol.asyncDispose](), CLEANUP_MS)
  }
}

const originOf = ({ image }: FlashPlan) => ({
  isRemote: image.url !== null,
  isDecoded: !isStoredRaw(image.format),
})

async function* verify(run: Run, written: Written): AsyncGenerator<FlashEvent> {
  const { plan, counted, device, tasks, slots, signal } = run
  const all = plan.verify === 'all'
  const meter = createMeter({
    phase: 'verify',
    totalBytes: bytesToVerify({ written, all }),
    sourceBytes: null,
    bytesRead: counted.bytesRead,
  })
  yield meter.look('verify')
  const order = { device, written, all, tasks, slots, signal, onVerified: meter.add }
  const reading = verifyWritten(order)
  yield* watch(untilAborted(signal, reading), TICK_MS, () => meter.look())
  yield meter.look()
}
