/** Flashes one image to several disks at once: one fetch and one decode feed all of them. */
import { findSameDisk } from '../../core/flash/many-disks.ts'
import { renderReasons, type FlashEvent, type FlashPlan } from '../../core/flash/flash.ts'
import type { FlashOutcome } from '../../core/flash/outcome.ts'
import { refuse } from '../../core/foundation/result.ts'
import { openRaw } from '../image/stream-blocks.ts'
import { openImage } from '../flash/image-blocks.ts'
import { createWaits } from '../flash/wait-times.ts'
import { createFlasher } from '../flash/flasher.ts'
import {
  createTools,
  lookAtImage,
  planTarget,
  type FlasherOptions,
  type FlashOrder,
  type FlashTools,
  type ManyFlashes,
  type PlannedFlash,
  type ReadyFlash,
} from '../flash/flash-planner.ts'
import { createSharedFeeds, type SharedFeed } from './shared-image.ts'

export type ManyFlasher = ReturnType<typeof createManyFlasher>

export function createManyFlasher(given: FlasherOptions) {
  const tools = createTools(given)
  const { run, checkContent } = createFlasher(given)
  return {
    checkContent,

    /** The image is opened and looked at once; what speaks against a flash is a value. */
    plan: (
      order: Omit<FlashOrder, 'target'>,
      targets: readonly string[],
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
  order: Omit<FlashOrder, 'target'>,
  targets: readonly string[],
  signal: AbortSignal,
): Promise<ManyFlashes> {
  await using undo = new AsyncDisposableStack()
  const opened = undo.use(await lookAtImage(tools, { ...order, target: '' }, signal))
  const flashes: PlannedFlash[] = []
  for (const target of targets) {
    const one = { ...order, target }
    const planned = await planTarget(tools, opened, one, signal)
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
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
}

async function runMany(
  tools: FlashTools,
  run: (flash: ReadyFlash, options: RunManyOptions) => Promise<FlashOutcome>,
  flashes: readonly PlannedFlash[],
  { signal, onEvent }: RunManyOptions,
): Promise<readonly FlashOutcome[]> {
  const [first] = flashes
  if (first === undefined) return []
  const feeds = await shareImage(tools, first, flashes.length, signal)
  const runs = flashes.map(async (flash, index) => {
    const feed = feeds[index]
    if (feed === undefined) return await run(flash, { signal, onEvent })
    const outcome = await run({ ...flash, openFeed: feed.open }, { signal, onEvent })
    // A disk that failed before its feed was opened must not hold up the others.
    feed.leave()
    return outcome
  })
  return await Promise.all(runs)
}

async function shareImage(
  { decoders }: FlashTools,
  { source, plan }: PlannedFlash,
  disks: number,
  signal: AbortSignal,
): Promise<readonly SharedFeed[]> {
  if (!plan.ok) return []
  const { image, sha256 } = plan.value
  const around = { waits: createWaits(), signal, mirrors: [] }
  const { counted, open } = await openImage(decoders, plan.value, source, around)
  // Nobody would notice that a pinned image changed between its two readings.
  const isSteady = image.format === 'img' && source.readAt !== null && sha256 === null
  const enter = isSteady ? (from: number) => Promise.resolve(openRaw(source, from)) : null
  return createSharedFeeds({ disks, counted, open: () => open(), enter, signal })
}
