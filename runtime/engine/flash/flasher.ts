/** Flashes: plans a request, carries out the plan, and reports the outcome. */
import type { DeltaState } from '../inventory/rules/run.ts'
import type { FlashEvent, FlashPlan } from './rules/flash.ts'
import type { Provisioning } from './rules/provisioning.ts'
import type { FirstBoot } from '../first-boot/rules/seed.ts'
import { describeFailure, type FlashOutcome, type FlashStage } from './rules/outcome.ts'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { lookInto } from '../image/image-look.ts'
import type { Source } from '../image/sources/source.ts'
import { ownFeed } from './image-feed.ts'
import {
  createTools,
  NOTHING,
  lookAtImage,
  lookAtTarget,
  planTarget,
  type FlasherOptions,
  type FlashOrder,
  type FlashTools,
  type PlannedFlash,
  type ReadyFlash,
} from './flash-planner.ts'
import { eraseFlashed } from './held-disk.ts'
import { checkImage, type CheckedImage, type ImageRequest } from './image-checks.ts'
import { openMirrors } from './mirrors.ts'
import { writeImage } from './writer.ts'

interface RunOptions {
  readonly signal: AbortSignal
  /** Called with each event of the write and of the step after it, as it comes. */
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
}

export type Flasher = ReturnType<typeof createFlasher>

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

    /**
     * Opens the image and looks at it, at the files and tools of the later steps, then at the target.
     * What speaks against the flash is a value; what is missing is a Fault. Nothing is written.
     */
    async plan(order: FlashOrder, signal: AbortSignal): Promise<PlannedFlash> {
      await using undo = new AsyncDisposableStack()
      const opened = undo.use(await lookAtImage(tools, order, signal))
      const facts = await lookAtTarget(tools, opened, order.target, signal)
      const planned = await planTarget(tools, opened, { ...order, facts }, signal)
      const { source } = opened
      const held = undo.move()
      return { ...planned, order, source, [Symbol.asyncDispose]: () => held.disposeAsync() }
    },

    /**
     * Decodes the image's first MiB, as `run` does before it touches the disk, for a caller that stops
     * at the plan: a Fault where it is damaged, no disk image, or made for other sectors. Standard
     * input stays unread.
     */
    async checkContent({ plan, source }: PlannedFlash, signal: AbortSignal): Promise<void> {
      if (plan.ok) await lookInto(decoders, { source, plan: plan.value }, signal, async () => null)
    },

    /** Writes the image, unless the disk is another one by now, then provisions it. Never throws. */
    async run(flash: ReadyFlash, options: RunOptions): Promise<FlashOutcome> {
      const reached: Reached = {
        stage: 'checking',
        bytesWritten: 0,
        bytesKept: null,
        delta: null,
        provisioned: null,
      }
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

/** How far a flash came. */
interface Reached {
  stage: FlashStage
  bytesWritten: number
  /** Null: nothing is compared. */
  bytesKept: number | null
  /** Null: nobody wanted it. */
  delta: DeltaState | null
  /** The step that was begun before the ends, as its event names it; null: none was. */
  provisioned: string | null
}

async function carryOut(
  tools: FlashTools,
  { order, plan: planned, source: opened, openFeed }: ReadyFlash,
  { signal, onEvent }: RunOptions,
  reached: Reached,
): Promise<FlashOutcome> {
  if (!planned.ok) throw new Fault('plan-refused', planned.refusal.join('; '))
  if (!tools.isRoot) throw new Fault('root-required', 'writing to a disk needs root', SUDO)
  const { provisioning = NOTHING, mirrors: places = [] } = order
  const plan = planned.value
  await using source = opened ? borrow(opened) : await tools.sources.open(order.image, { signal })
  const beforeEnds = await loadBeforeEnds(tools, order.firstBoot)
  // Whoever gives a feed has opened them.
  await using opening = await openMirrors(tools.sources, openFeed ? [] : places, signal)
  const before = performance.now()
  const feed = openFeed ?? ownFeed(tools.decoders, plan, source, opening.mirrors)
  const step = await openStep(tools, provisioning, plan, signal)
  const { seedEarly } = step
  const warnings: string[] = []
  const onWarning = (words: string) => void warnings.push(words)
  for await (const event of writeImage(tools, plan, feed, {
    signal,
    beforeEnds,
    seedEarly,
    onWarning,
  })) {
    note(event, reached)
    onEvent(event, plan)
  }
  reached.stage = 'written'
  const seconds = (performance.now() - before) / 1000
  await step.finish(reached, (event) => onEvent(event, plan))
  const { bytesWritten, bytesKept, delta } = reached
  const verified = plan.verify !== 'none'
  return { kind: 'done', plan, bytesWritten, bytesKept, delta, seconds, verified, warnings }
}

/** What is done before the ends where it can be, and after them where it was not. */
async function openStep(
  tools: FlashTools,
  provisioning: Provisioning,
  plan: FlashPlan,
  signal: AbortSignal,
) {
  const { node, allowPartition } = plan.target
  const { mode } = provisioning
  if (mode === 'none') return { seedEarly: null, finish: async () => {} }
  const provisioner = await tools.loadProvisioner()
  // The kernel reads no table that lies in a partition.
  const seedEarly = allowPartition ? null : await provisioner.openEarly(provisioning, signal)
  const apply = () => provisioner.apply(provisioning, node, { signal })
  return {
    seedEarly,
    async finish(reached: Reached, onEvent: (event: FlashEvent) => void) {
      if (reached.provisioned === mode) return
      onEvent({ event: 'provisioning', note: mode })
      await provisionLate(tools, plan, reached, apply)
    },
  }
}

/**
 * After the ends: nobody may boot what was not provisioned to its end, so that a failure erases them.
 * Where that fails too, the image stays, and both are said.
 */
async function provisionLate(
  tools: FlashTools,
  plan: FlashPlan,
  reached: Reached,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await work()
  } catch (thrown) {
    try {
      await eraseFlashed(tools, plan)
      reached.stage = 'writing'
    } catch (late) {
      throw addReason(thrown, `the disk could not be erased: ${renderError(late)}`)
    }
    throw thrown
  }
}

function addReason(thrown: unknown, reason: string): unknown {
  if (!(thrown instanceof Fault)) return thrown
  const { code, message, hint } = thrown
  return new Fault(code, `${message}; then ${reason}`, { hint, cause: thrown })
}

/** Null: nothing comes between the image and its ends. */
const loadBeforeEnds = async ({ loadSeedWriter }: FlashTools, firstBoot: FirstBoot | null = null) =>
  firstBoot && (await loadSeedWriter()).create(firstBoot)

/** Whoever opened it closes it. */
const borrow = (source: Source): Source => ({ ...source, [Symbol.asyncDispose]: async () => {} })

function note(event: FlashEvent, reached: Reached) {
  if (event.event === 'provisioning') reached.provisioned = event.note
  if (event.event !== 'writing') return
  reached.stage = 'writing'
  if (event.phase !== 'write') return
  reached.bytesWritten = event.bytes_written
  reached.bytesKept = event.bytes_kept ?? null
  reached.delta = event.delta ?? reached.delta
}

const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const
