/** Flashes: plans a request, carries out the plan, and reports the outcome. */
import type { DiskIdentity } from '../../core/disk/disk.ts'
import {
  planFlash,
  renderReasons,
  type FlashEvent,
  type FlashFindings,
  type FlashOptions,
  type FlashPlan,
  type FlashRefusal,
} from '../../core/flash/flash.ts'
import type { FirstBoot } from '../../core/first-boot/seed.ts'
import { describeFailure, type FlashOutcome, type FlashStage } from '../../core/flash/outcome.ts'
import type { Provisioning } from '../../core/flash/provisioning.ts'
import { Fault } from '../../core/foundation/fault.ts'
import { refuse, type Result } from '../../core/foundation/result.ts'
import { createDisks } from '../disk/disks.ts'
import { createShell } from '../host/shell.ts'
import { untilAborted } from '../host/watch.ts'
import { createDecoders } from '../image/decoders.ts'
import { createFiller } from '../image/filler.ts'
import { readHead } from '../image/image-head.ts'
import { createImages } from '../image/images.ts'
import type { Source } from '../image/source.ts'
import { createSources, type Sources, type SourcesOptions } from '../image/sources.ts'
import { checkImage, type CheckedImage, type ImageRequest } from './image-checks.ts'
import { writeImage } from './writer.ts'

export interface FlashOrder {
  /** A path, `-`, an http(s) URL or an oras reference. */
  readonly image: string
  readonly format: ImageRequest['format']
  /** Further places of the same image: they serve frames where it has an index. */
  readonly mirrors?: readonly string[]
  /** A block device. */
  readonly target: string
  readonly options: FlashOptions
  /** The disk that was at `target` when a person chose it; absent or null: nobody looked. */
  readonly chosen?: DiskIdentity | null
  /** The step after the write; absent: none. */
  readonly provisioning?: Provisioning
  /** Written before the disk can boot; absent or null: nothing is. */
  readonly firstBoot?: FirstBoot | null
}

/** A flash that `run` can carry out. */
interface ReadyFlash {
  readonly order: Pick<FlashOrder, 'image' | 'mirrors' | 'target' | 'provisioning' | 'firstBoot'>
  /** Refused with every reason against it. */
  readonly plan: Result<FlashPlan, readonly string[]>
  /** The opened image, which stays open; absent: `run` opens it. */
  readonly source?: Source
}

/** What became of an order; holds the image open until it is disposed of, for `run` to read it. */
interface PlannedFlash extends FlashFindings, Required<ReadyFlash>, AsyncDisposable {}

interface RunOptions {
  readonly signal: AbortSignal
  /** Called with each event of the write and of the step after it, as it comes. */
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
}

interface FlasherOptions extends SourcesOptions {
  /** Whether this process may write to disks; absent: known only once the disk is opened. */
  readonly isRoot?: boolean
}

export type Flasher = ReturnType<typeof createFlasher>

export function createFlasher(given: FlasherOptions) {
  const tools = createTools(given)
  const { sources, images, decoders, disks } = tools

  return {
    /** What an image is; a Fault where it cannot be read. */
    async inspect(
      { image, ...request }: Pick<FlashOrder, 'image'> & ImageRequest,
      signal: AbortSignal,
    ): Promise<CheckedImage> {
      await using source = await sources.open(image, { signal })
      return await checkImage(source, request, images, signal)
    },

    /**
     * Opens the image and looks at it, at the files and tools of the later steps, then at the target.
     * What speaks against the flash is a value; what is missing is a Fault. Nothing is written.
     */
    async plan(order: FlashOrder, signal: AbortSignal): Promise<PlannedFlash> {
      const { format, provisioning = NOTHING } = order
      await using undo = new AsyncDisposableStack()
      const source = undo.use(await sources.open(order.image, { signal }))
      const request = { format, sha256: order.options.sha256 }
      const { image, imageProblem, sha256 } = await checkImage(source, request, images, signal)
      if (provisioning.mode !== 'none') await (await tools.loadProvisioner()).check(provisioning)
      if (order.firstBoot) await (await tools.loadSeedWriter()).check()
      if (image.format !== null) await decoders.check(image.format)
      const target = await untilAborted(signal, disks.probe(order.target, image.path))
      const options = { ...order.options, sha256 }
      const planned = planFlash(image, target, options, order.chosen)
      const refusals = planned.ok
        ? await refuseGrowth(tools, source, planned.value, signal)
        : planned.refusal
      const findings = { image, imageProblem, target, options, refusals }
      const reasons = renderReasons(findings)
      const plan = planned.ok && reasons.length === 0 ? planned : refuse(reasons)
      const held = undo.move()
      return { ...findings, order, source, plan, [Symbol.asyncDispose]: () => held.disposeAsync() }
    },

    /**
     * Decodes the image's first MiB, as `run` does before it touches the disk, for a caller that stops
     * at the plan: a Fault where it is damaged, no disk image, or made for other sectors. Standard
     * input stays unread.
     */
    async checkContent({ plan, source }: PlannedFlash, signal: AbortSignal): Promise<void> {
      if (!plan.ok || (source.path === null && source.url === null)) return
      const opening = decoders.open(source, plan.value.image.format)
      try {
        const blocks = await untilAborted(signal, opening)
        await untilAborted(signal, readHead(createFiller(blocks), plan.value))
      } finally {
        await (await opening)[Symbol.asyncDispose]()
      }
    },

    /** Writes the image, unless the disk is another one by now, then provisions it. Never throws. */
    async run(flash: ReadyFlash, options: RunOptions): Promise<FlashOutcome> {
      const reached: Reached = { stage: 'checking', bytesWritten: 0, bytesKept: null }
      try {
        return await carryOut(tools, flash, options, reached)
      } catch (thrown) {
        const { target } = flash.order
        const isAborted = options.signal.aborted
        return describeFailure(thrown, { target, stage: reached.stage, isAborted })
      }
    },
  }
}

function createTools(given: FlasherOptions) {
  const { env, isRoot = true } = given
  const shell = createShell({ env })
  const disks = createDisks({ shell })
  const decoders = createDecoders({ shell })
  return {
    shell,
    env,
    isRoot,
    disks,
    decoders,
    images: createImages({ shell }),
    sources: createSources(given),
    /** Loaded only for a flash that provisions. */
    async loadProvisioner() {
      const { createProvisioner } = await import('./provisioner.ts')
      return createProvisioner({ shell, env })
    },
    /** Loaded only for a flash with a first-boot configuration. */
    async loadSeedWriter() {
      const { checkSeedTools, createSeedWriter } = await import('./seed-writer.ts')
      return {
        check: () => checkSeedTools({ shell, env }),
        create: (firstBoot: FirstBoot) => createSeedWriter({ shell, env }, firstBoot),
      }
    },
  }
}

/** The image is looked into only where nothing else speaks against the flash. */
async function refuseGrowth(
  tools: ReturnType<typeof createTools>,
  source: Source,
  plan: FlashPlan,
  signal: AbortSignal,
): Promise<readonly FlashRefusal[]> {
  if (!plan.grow) return []
  const { findGrowthProblem } = await import('./growth-check.ts')
  const reason = await findGrowthProblem(tools, source, plan, signal)
  return reason === null ? [] : [{ why: 'cannot-grow', reason }]
}

/** How far a flash came. */
interface Reached {
  stage: FlashStage
  bytesWritten: number
  /** Null: nothing is compared. */
  bytesKept: number | null
}

async function carryOut(
  tools: ReturnType<typeof createTools>,
  { order, plan: planned, source: opened }: ReadyFlash,
  { signal, onEvent }: RunOptions,
  reached: Reached,
): Promise<FlashOutcome> {
  if (!planned.ok) throw new Fault('plan-refused', planned.refusal.join('; '))
  if (!tools.isRoot) throw new Fault('root-required', 'writing to a disk needs root', SUDO)
  const { provisioning = NOTHING } = order
  const plan = planned.value
  await using source = opened ? borrow(opened) : await tools.sources.open(order.image, { signal })
  const { firstBoot = null } = order
  const beforeEnds = firstBoot === null ? null : (await tools.loadSeedWriter()).create(firstBoot)
  await using opening = await openMirrors(tools.sources, order.mirrors ?? [], signal)
  const { mirrors } = opening
  const before = performance.now()
  for await (const event of writeImage(tools, plan, source, { signal, beforeEnds, mirrors })) {
    note(event, reached)
    onEvent(event, plan)
  }
  const seconds = (performance.now() - before) / 1000
  if (provisioning.mode !== 'none') {
    onEvent({ event: 'provisioning', note: provisioning.mode }, plan)
    const provisioner = await tools.loadProvisioner()
    await provisioner.apply(provisioning, plan.target.node, { signal })
  }
  const { bytesWritten, bytesKept } = reached
  const verified = plan.verify !== 'none'
  return { kind: 'done', plan, bytesWritten, bytesKept, seconds, verified }
}

/** Those that can be opened: the image itself is elsewhere as well. */
async function openMirrors(sources: Sources, locations: readonly string[], signal: AbortSignal) {
  await using undo = new AsyncDisposableStack()
  const opening = await Promise.allSettled(locations.map((at) => sources.open(at, { signal })))
  const opened = opening.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  for (const source of opened) undo.use(source)
  const held = undo.move()
  return { mirrors: opened, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

/** Whoever opened it closes it. */
const borrow = (source: Source): Source => ({ ...source, [Symbol.asyncDispose]: async () => {} })

function note(event: FlashEvent, reached: Reached) {
  if (event.event === 'synced') reached.stage = 'written'
  if (event.event !== 'writing') return
  reached.stage = 'writing'
  if (event.phase !== 'write') return
  reached.bytesWritten = event.bytes_written
  reached.bytesKept = event.bytes_kept ?? null
}

const NOTHING: Provisioning = { mode: 'none' }
const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const
