/** Flashes one image to several disks at once: one fetch and one decode feed all of them. */
import { findSameDisk } from '../rules/many-disks.ts'
import { renderReasons, type FlashEvent, type FlashPlan } from '../rules/flash.ts'
import { describeFailure, type FlashOutcome } from '../rules/outcome.ts'
import { refuse } from '../../../kit/foundation/result.ts'
import { openImage } from '../image-blocks.ts'
import { openMirrors } from '../mirrors.ts'
import { createWaits } from '../wait-times.ts'
import { createFlasher } from '../flasher.ts'
import type { Source } from '../../image/sources/source.ts'
import {
  createTools,
  lookAtImage,
  lookAtTarget,
  planTarget,
  type FlasherOptions,
  type FlashOrder,
  type FlashTools,
  type ManyFlashes,
  type PlannedFlash,
  type ReadyFlash,
} from '../flash-planner.ts'
import { createSharedFeeds, type SharedFeed } from './shared-image.ts'

export type ManyFlasher = ReturnType<typeof createManyFlasher>

type ManyOrder = Omit<FlashOrder, keyof ManyTarget>
/** One of the disks, and which one was chosen. */
type ManyTarget = Pick<FlashOrder, 'target' | 'chosen'>

export function createManyFlasher(given: FlasherOptions) {
  const tools = createTools(given)
  const { run, checkContent } = createFlasher(given)
  return {
    checkContent,

    /** The image is opened and looked at once; what speaks against a flash is a value. */
    plan: (
      order: ManyOrder,
      targets: readonly ManyTarget[],
      signal: AbortSignal,
    ): Promise<ManyFlashes> => planMany(tools, order, targets, signal),

    /** Each disk ends for itself; never throws. In the order of the flashes, which all may go ahead. */
    run: (
      { flashes }: Pick<ManyFlashes, 'flashes'>,
      options: RunManyOptions,
    ): Promise<readonly FlashOutcome[]> => runMany(tools, run, flashes, options),
  }
}

async function planMany(
  tools: FlashTools,
  order: ManyOrder,
  targets: readonly ManyTarget[],
  signal: AbortSignal,
): Promise<ManyFlashes> {
  await using undo = new AsyncDisposableStack()
  const opened = undo.use(await lookAtImage(tools, { ...order, target: '' }, signal))
  const flashes: PlannedFlash[] = []
  const looks = targets.map(async (target) => ({
    target,
    facts: await lookAtTarget(tools, opened, target.target, signal),
  }))
  for (const { target, facts } of await Promise.all(looks)) {
    const one = { ...order, ...target }
    const planned = await planTarget(tools, opened, { ...one, facts }, signal)
    const same = findSameDisk(
      planned.target,
      flashes.map((flash) => flash.target),
    )
    const refusals = same === null ? planned.refusals : [...planned.refusals, same]
    const plan = same === null ? planned.plan : refuse(renderReasons({ ...planned, refusals }))
    const kept = { ...planned, refusals, plan, order: one, source: opened.source }
    flashes.push({ ...kept, [Symbol.asyncDispose]: () => Promise.resolve() })
  }
  const held = undo.move()
  return { flashes, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

interface RunManyOptions {
  readonly signal: AbortSignal
  /** Called when a disk is done with; `disk`: as the user named it. */
  readonly onEnd?: (end: FlashOutcome, disk: string) => void
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
}

async function runMany(
  tools: FlashTools,
  run: (flash: ReadyFlash, options: RunManyOptions) => Promise<FlashOutcome>,
  flashes: readonly PlannedFlash[],
  { onEnd, ...options }: RunManyOptions,
): Promise<readonly FlashOutcome[]> {
  const { signal } = options
  const [first] = flashes
  if (first === undefined) return []
  try {
    const { mirrors: places = [] } = first.order
    await using opened = await openMirrors(tools.sources, places, signal)
    const feeds = await shareImage(tools, first, { disks: flashes.length, ...opened }, signal)
    const runs = flashes.map(async (flash, index) => {
      const feed = feeds[index]
      const fed = feed === undefined ? flash : { ...flash, openFeed: feed.open }
      const end = await run(fed, options)
      // A disk that failed before its feed was opened must not hold up the others.
      feed?.leave()
      onEnd?.(end, flash.order.target)
      return end
    })
    return await Promise.all(runs)
  } catch (thrown) {
    const isAborted = signal.aborted
    return flashes.map(({ order: { target } }) =>
      describeFailure(thrown, { target, stage: 'checking', isAborted }),
    )
  }
}

interface Sharing {
  readonly disks: number
  readonly mirrors: readonly Source[]
}

async function shareImage(
  { decoders }: FlashTools,
  { source, plan }: PlannedFlash,
  { disks, mirrors }: Sharing,
  signal: AbortSignal,
): Promise<readonly SharedFeed[]> {
  if (!plan.ok) return []
  const around = { waits: createWaits(), signal, mirrors }
  const { counted, open, enter } = await openImage(decoders, plan.value, source, around)
  return createSharedFeeds({
    disks,
    counted,
    open: () => open(),
    enter,
    verifies: plan.value.verify !== 'none',
    signal,
  })
}
