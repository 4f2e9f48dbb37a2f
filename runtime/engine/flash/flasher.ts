/** The whole way of a flash, from an order to the last 4 KiB of each disk: looks, refuses, writes, verifies, provisions, reports. */
import type { DeltaState } from '#engine/inventory/rules/run.ts'
import { decideRace, type FlashEvent, type FlashOrder, type FlashPlan } from './rules/flash-plan.ts'
import {
  describeFailure,
  type FlashOutcome,
  nextStage,
  type FlashStage,
} from './rules/run-report.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import {
  type CheckedImage,
  checkImage,
  type ImageRequest,
  inspectImage,
  readEnd,
} from '#engine/image/image-inspection.ts'
import { exactBytes } from '#engine/image/rules/image.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { type EndPiece, planEnds } from '#engine/disk/rules/extents.ts'
import { clearEnds, type Device, eraseEnds, openDevice, writeEnds } from '#engine/disk/device.ts'
import { type Disks, rereadPartitions } from '#engine/disk/disks.ts'
import type { EarlySeeder } from './early-seeder.ts'
import { openMirrors, ownStream, type ImageStream, type OpenStream } from './image-stream.ts'
import {
  createTools,
  NOTHING,
  planFlashes,
  type FlasherOptions,
  type FlashTools,
  type PlannedFlashes,
  type ReadyDisk,
  type ReadyFlashes,
} from './flash-planner.ts'
import { createWaits } from './meter.ts'
import type { BeforeEnds } from './seed-writer.ts'
import type { SharedFlash } from './shared-image.ts'
import { createDeadline, untilAborted } from '#kit/host/watch.ts'
import { countSlots, createSlots, createTaskGroup } from './copier.ts'
import {
  CLEANUP_MS,
  openDelta,
  planChanges,
  prepareGrowing,
  readBodyBack,
  readFirst,
  writeBody,
  type TableChanges,
  type WriteRun,
} from './writer.ts'
import type { Shell } from '#kit/host/shell.ts'

export interface RunOptions {
  readonly signal: AbortSignal
  /** Called with each event of the write and of the step after it, as it comes. */
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
  /** This runs when a disk is done with; `disk` is named as the user did. */
  readonly onEnd?: (end: FlashOutcome, disk: string) => void
}

export type Flasher = ReturnType<typeof createFlasher>

/** Creates the flasher: `plan` looks and refuses, `run` writes; `flash` does both. */
export function createFlasher(given: FlasherOptions) {
  const tools = createTools(given)
  const { sources, decoders } = tools

  return {
    /** What an image is; a Fault where it cannot be read. */
    async inspect(
      { image, ...request }: Pick<FlashOrder, 'image'> & ImageRequest,
      signal: AbortSignal,
    ): Promise<CheckedImage> {
      await using source = await sources.open(image, { signal })
      return await checkImage(source, request, tools, signal)
    },

    /** This plans as `planFlashes` does. */
    plan: (order: FlashOrder, signal: AbortSignal): Promise<PlannedFlashes> =>
      planFlashes(tools, order, signal),

    /**
     * Decodes the image's first MiB, as `run` does before it touches the disk, for a caller that stops
     * at the plan: a Fault where it is damaged, no disk image, or made for other sectors. Standard
     * input stays unread.
     */
    async checkContent({ disks: [first], source }: PlannedFlashes, signal: AbortSignal) {
      if (first?.plan.ok !== true) return
      await inspectImage(decoders, { source, plan: first.plan.value }, signal, async () => null)
    },

    /**
     * Writes the image to all disks at once, each unless it is another one by now, then provisions it.
     * Where one of them is refused, none is written. Each disk ends for itself; never throws. The
     * outcomes are in the order of the disks.
     */
    run: (flashes: ReadyFlashes, options: RunOptions): Promise<readonly FlashOutcome[]> =>
      runAll(tools, flashes, options),

    /** Plans and runs; never throws. The outcomes are in the order of the targets. */
    async flash(order: FlashOrder, options: RunOptions): Promise<readonly FlashOutcome[]> {
      try {
        await using planned = await planFlashes(tools, order, options.signal)
        return await runAll(tools, planned, options)
      } catch (thrown) {
        return order.targets.map(({ path }) => describeUnbegun(thrown, path, options.signal))
      }
    },
  }
}

async function runAll(
  tools: FlashTools,
  { order, disks, source: opened }: ReadyFlashes,
  options: RunOptions,
): Promise<readonly FlashOutcome[]> {
  const { signal, onEnd } = options
  let ends: readonly FlashOutcome[] | null = null
  try {
    const plans = acceptAll(disks)
    if (!tools.isRoot) throw new Fault('root-required', 'writing to a disk needs root', SUDO)
    await using source = opened ? borrow(opened) : await tools.sources.open(order.image, { signal })
    await using elsewhere = await openMirrors(tools.sources, order.mirrors ?? [], signal)
    const streams = await openStreams(tools, plans, { source, ...elsewhere }, signal)
    ends = await Promise.all(
      streams.map(async ({ leave, ...flash }) => {
        const own = { ...options, signal: flash.signal }
        const end = await runOne(tools, { ...flash, order }, own)
        // A disk that failed before its image stream was opened must not hold up the others.
        leave()
        onEnd?.(end, flash.plan.target.path)
        return end
      }),
    )
    return ends
  } catch (thrown) {
    // Only the source was still to be closed: what is on the disks is on them.
    if (ends !== null) return ends
    return disks.map(({ target: { path } }) => {
      const end = describeUnbegun(thrown, path, signal)
      onEnd?.(end, path)
      return end
    })
  }
}

/** A Fault `plan-refused` with every reason against any of them. */
function acceptAll(disks: readonly ReadyDisk[]): readonly FlashPlan[] {
  const reasons = new Set(disks.flatMap(({ plan }) => (plan.ok ? [] : plan.refusal)))
  if (reasons.size > 0) throw new Fault('plan-refused', [...reasons].join('; '))
  return disks.flatMap(({ plan }) => (plan.ok ? [plan.value] : []))
}

/** Whoever opened it closes it. */
const borrow = (source: Source): Source => ({ ...source, [Symbol.asyncDispose]: async () => {} })

/** One disk has a decoder of its own; several share one fetch and one decode. */
async function openStreams(
  { decoders, diskStallMs }: FlashTools,
  plans: readonly FlashPlan[],
  { source, mirrors }: { readonly source: Source; readonly mirrors: readonly Source[] },
  signal: AbortSignal,
): Promise<readonly SharedFlash[]> {
  const [plan, ...more] = plans
  if (plan === undefined) return []
  if (more.length === 0) {
    return [{ plan, openStream: ownStream(decoders, plan, source, mirrors), signal, leave() {} }]
  }
  const { shareImage } = await import('./shared-image.ts')
  const limits = { signal, stallMs: diskStallMs }
  return await shareImage(decoders, [plan, ...more], { source, mirrors }, limits)
}

const describeUnbegun = (thrown: unknown, target: string, { aborted }: AbortSignal) =>
  describeFailure(thrown, { target, stage: 'checking', isAborted: aborted })

interface Reached {
  readonly record: DiskRecord
  bytesWritten: number
  /** Null: nothing is compared. */
  bytesKept: number | null
  /** Null: nobody wanted it. */
  delta: DeltaState | null
  /** The step that was begun before the ends, as its event names it; null: none was. */
  provisioned: string | null
}

interface DiskFlash extends Pick<SharedFlash, 'plan' | 'openStream'> {
  readonly order: ReadyFlashes['order']
}

/** One disk, from its plan to what became of it. Never throws. */
async function runOne(
  tools: FlashTools,
  flash: DiskFlash,
  options: RunOptions,
): Promise<FlashOutcome> {
  const reached: Reached = {
    record: createDiskRecord(),
    bytesWritten: 0,
    bytesKept: null,
    delta: null,
    provisioned: null,
  }
  try {
    return await writeAndProvision(tools, flash, options, reached)
  } catch (thrown) {
    const { path: target } = flash.plan.target
    const isAborted = options.signal.aborted
    return describeFailure(thrown, { target, stage: reached.record.stage(), isAborted })
  }
}

async function writeAndProvision(
  tools: FlashTools,
  { order: { firstBoot = null, provisioning = NOTHING }, plan, openStream }: DiskFlash,
  { signal, onEvent }: RunOptions,
  reached: Reached,
): Promise<FlashOutcome> {
  // What few flashes need is loaded for these alone.
  const beforeEnds = firstBoot && (await tools.loadSeedWriter()).create(firstBoot)
  const provisioner = provisioning.mode === 'none' ? null : await tools.loadProvisioner()
  const before = performance.now()
  // The kernel reads no table that lies in a partition.
  const canSeedEarly = provisioner !== null && !plan.target.allowPartition
  const seedEarly = canSeedEarly ? await provisioner.openEarly(provisioning, signal) : null
  const warnings: string[] = []
  const onWarning = (words: string) => void warnings.push(words)
  const how = { signal, beforeEnds, seedEarly, onWarning, record: reached.record }
  for await (const event of writeImage(tools, plan, openStream, how)) {
    note(event, reached)
    onEvent(event, plan)
  }
  const seconds = (performance.now() - before) / 1000
  if (provisioner !== null && reached.provisioned !== provisioning.mode) {
    onEvent({ event: 'provisioning', note: provisioning.mode }, plan)
    const work = provisioner.apply(provisioning, plan.target.node, {
      signal,
      warn: onWarning,
    })
    // Nobody may boot what was not provisioned to its end.
    await orErase({ ...tools, record: reached.record }, plan, work)
  }
  const { bytesWritten, bytesKept, delta } = reached
  const verified = plan.verify !== 'none'
  return { kind: 'done', plan, bytesWritten, bytesKept, delta, seconds, verified, warnings }
}

const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const

function note(event: FlashEvent, reached: Reached) {
  if (event.event === 'provisioning') reached.provisioned = event.note
  if (event.event !== 'writing' || event.phase !== 'write') return
  reached.bytesWritten = event.bytes_written
  reached.bytesKept = event.bytes_kept ?? null
  reached.delta = event.delta ?? reached.delta
}

interface WriteOptions {
  readonly signal: AbortSignal
  /** Null: nothing comes between the image and its ends. */
  readonly beforeEnds?: BeforeEnds | null
  /** What `--provision` writes before the ends where it can; null: nothing. */
  readonly seedEarly?: EarlySeeder | null
  readonly onWarning?: ((words: string) => void) | undefined
  readonly record?: DiskRecord
}

/**
 * Writes the plan's image: `started`, `writing` again and again (the first one when the first byte
 * is written), `provisioning` where something comes before the ends, `synced`, `partprobed`. A seed
 * of `--provision` that is written before the ends comes between these two and the ends, as the
 * earlier specification has the events; the kernel reads the table at the very end either way.
 * Whatever goes wrong is thrown, as a Fault, after the disk was left without partition table and
 * boot code; so is a cancel through `signal` (`cancelled`, or the Fault that is its reason).
 */
export async function* writeImage(
  tools: Pick<FlashTools, 'shell' | 'env' | 'disks'>,
  plan: FlashPlan,
  openStream: OpenStream,
  options: WriteOptions,
): AsyncGenerator<FlashEvent> {
  const { signal } = options
  yield { event: 'started', total_bytes: exactBytes(plan.image.virtual) }
  let isTold = false
  try {
    for await (const event of checkAndOverwrite(tools, plan, openStream, options)) {
      isTold ||= event.event === 'partprobed'
      yield event
    }
  } catch (cause) {
    if (!signal.aborted) throw cause
    if (signal.reason instanceof Fault) throw signal.reason
    throw new Fault('cancelled', `cancelled while writing to ${plan.target.path}`, { cause })
  }
  if (!isTold) yield { event: 'synced' }
  await rereadPartitions(tools.shell, plan.target.node)
  if (!isTold) yield { event: 'partprobed' }
}

/** Up to the first byte: everything that can be wrong with the image's beginning or the disk is found here. */
async function* checkAndOverwrite(
  tools: WriteTools,
  plan: FlashPlan,
  openStream: OpenStream,
  options: WriteOptions,
): AsyncGenerator<FlashEvent> {
  const { beforeEnds: planned = null, seedEarly = null, onWarning: warn } = options
  const { signal, record = createDiskRecord() } = options
  const waits = createWaits()
  const opened = await untilAborted(signal, openStream({ waits, signal }))
  const tasks = createTaskGroup()
  const slots = createSlots(countSlots(plan.image.format), opened.pool)
  const withinDeadline = createDeadline(CLEANUP_MS)
  const facts = { ...plan.target, sizeBytes: plan.target.identity.sizeBytes }
  let opening: Promise<ImageStream> | null = null
  const disk = createHolding({ ...tools, record }, plan, signal)
  try {
    // What is compared must not change any more.
    const compared = plan.delta && opened.map !== null ? await disk.hold() : null
    const delta = await openDelta(plan, opened.map, compared)
    opening = opened.open(delta.comparison?.compare)
    const first = readFirst(opening, plan)
    const { imageStream, head } = await disk.orRaced(untilAborted(signal, first))
    const changes = await planChanges(plan, head, facts)
    const prepare = planned?.plan(head, facts) ?? null
    const device = compared ?? (await disk.hold())
    await disk.check()
    signal.throwIfAborted()
    const image = { plan, counted: opened.counted, delta, imageStream, head, ...changes }
    yield* overwrite(
      { ...image, device, prepare, seedEarly, tasks, slots, waits, signal, warn, record },
      tools,
    )
  } finally {
    await withinDeadline(close(opening))
    // The disk stays open for writes that are still under way after the deadline.
    await withinDeadline(tasks.land().then(disk.release, disk.release))
  }
}

/** Also what is still being opened. */
async function close(opening: Promise<AsyncDisposable> | null) {
  const opened = await opening
  await opened?.[Symbol.asyncDispose]()
}

type WriteTools = Parameters<typeof writeImage>[0]

interface Overwriting extends WriteRun, TableChanges {
  /** What a first-boot configuration writes between the image and its ends; null: nothing. */
  readonly prepare: ReturnType<BeforeEnds['plan']> | null
  readonly seedEarly: EarlySeeder | null
  readonly warn: WriteOptions['onWarning']
  readonly record: DiskRecord
}

/**
 * Writes the disk from the first byte to the last. A disk boots only with its ends, the first and
 * the last MiB: they are cleared first and written last, so that whatever happens in between leaves
 * a disk that does not boot, and never half of an image that does.
 */
async function* overwrite(run: Overwriting, tools: WriteTools): AsyncGenerator<FlashEvent> {
  const { plan, device, moved, growth, counted, prepare, seedEarly, tasks, signal } = run
  const verifies = plan.verify !== 'none'
  let pieces: readonly EndPiece[] = []
  // The disk's old content is lost from here on.
  let onEnds = clearEnds(device)
  // Its failure is awaited after the event that announces it.
  onEnds.catch(() => undefined)
  let isWhole = false
  try {
    const written = yield* writeBody(run, tools.shell, onEnds)
    // The image's own end, and with it the digest of all of it, before anything of it counts.
    const tail = await untilAborted(signal, readEnd(run, written.end))
    await untilAborted(signal, device.flush())
    const grow = await prepareGrowing(tools, run, written)
    if (verifies) yield* readBodyBack(run, written)
    await untilAborted(signal, written.marks.check(written.end))
    if (prepare !== null) {
      yield { event: 'provisioning', note: 'first-boot' }
      const preparing = prepare({ device, verifies, signal, warn: run.warn }).then(() =>
        device.flush(),
      )
      // A cancel does not wait for it, but the disk stays open until its tools have ended.
      tasks.launch(() => preparing)
      await untilAborted(signal, preparing)
    }
    if (grow !== null) yield* grow({ bytesRead: counted.bytesRead(), bytesWritten: written.end })
    const ends = { head: growth?.head ?? run.head, tail, moved }
    const left =
      seedEarly && (yield* seedEarly({ device, ends, verifies, tasks, signal, warn: run.warn }))
    // The last MiB, then the first without its beginning, at the very end the first 4 KiB.
    pieces = left ?? planEnds(device.sizeBytes, ends)
    onEnds = writeEnds(device, pieces, verifies, signal)
    await untilAborted(signal, onEnds)
    isWhole = true
    run.record.complete()
  } finally {
    // Nothing boots without its ends. What is still being written there must come before this.
    const erase = () => eraseEnds(device, pieces)
    if (!isWhole) tasks.launch(() => onEnds.then(erase, erase))
  }
}

/**
 * The disk is opened by `hold`, and closed by `release`, which also waits for an opening that is still
 * under way. A Fault `target-raced` where it is in use, or another disk than the plan names.
 */
function createHolding(
  { disks, record }: { readonly disks: Pick<Disks, 'probe'>; readonly record: DiskRecord },
  plan: FlashPlan,
  signal: AbortSignal,
) {
  const { target, image } = plan
  let opening: Promise<Device> | null = null
  let checking: Promise<void> | null = null

  async function inspect() {
    const race = decideRace(plan, await untilAborted(signal, disks.probe(target.path, image.path)))
    if (race !== null) throw new Fault('target-raced', race)
  }

  return {
    /** Nothing may be written before `check` has resolved. */
    async hold(): Promise<Device> {
      opening = openDevice({ ...target, sizeBytes: target.identity.sizeBytes })
      const device = await untilAborted(signal, opening)
      checking = inspect()
      checking.catch(() => undefined)
      return record.watch(device)
    },
    /** Resolves when the disk was found to be the one of the plan. */
    async check() {
      await checking
    },
    /** `work` reads the disk: if that fails on another disk than the plan's, the Fault says so. */
    async orRaced<Value>(work: Promise<Value>): Promise<Value> {
      try {
        return await work
      } catch (thrown) {
        await checking
        throw thrown
      }
    },
    async release() {
      const device = await opening
      await device?.[Symbol.asyncDispose]()
    },
  }
}

interface EraseTools {
  readonly disks: Pick<Disks, 'probe'>
  readonly shell: Shell
  readonly record: DiskRecord
}

/**
 * For `work` after the ends: where it fails, the disk is taken its table and boot code again, if it is
 * still the one of the plan and nobody uses it. Where that fails too, both are said.
 */
async function orErase(tools: EraseTools, plan: FlashPlan, work: Promise<void>): Promise<void> {
  try {
    await work
  } catch (thrown) {
    try {
      await eraseFlashed(tools, plan)
    } catch (late) {
      if (!(thrown instanceof Fault)) throw thrown
      const { code, message, hint } = thrown
      const words = `${message}; then the disk could not be erased: ${renderError(late)}`
      throw new Fault(code, words, { hint, cause: thrown })
    }
    throw thrown
  }
}

async function eraseFlashed({ shell, ...tools }: EraseTools, plan: FlashPlan): Promise<void> {
  // This must happen after a cancel as well, so its signal never aborts.
  const disk = createHolding(tools, plan, new AbortController().signal)
  try {
    const device = await disk.hold()
    await disk.check()
    await clearEnds(device)
  } finally {
    await disk.release()
  }
  await rereadPartitions(shell, plan.target.node)
}

type DiskRecord = ReturnType<typeof createDiskRecord>

function createDiskRecord() {
  let stage: FlashStage = 'checking'
  return {
    stage: () => stage,
    /** All of the image is on the disk, with its ends. */
    complete() {
      stage = 'written'
    },
    /** The same device, whose writes are recorded. */
    watch(device: Device): Device {
      return {
        ...device,
        async write(slot, offset) {
          const isFirst = offset === 0
          const write = { isFirst, isBlank: isFirst && slot.every((byte) => byte === 0) }
          stage = nextStage(stage, { ...write, isConfirmed: false })
          await device.write(slot, offset)
          stage = nextStage(stage, { ...write, isConfirmed: true })
        },
      }
    },
  }
}
