/** Runs a flash of the wizard, chosen by a person or by the server, from the checks to its end. */
import type { FlashEvent, FlashPlan } from '../../../engine/flash/rules/flash.ts'
import { describeFailure, type FlashOutcome } from '../../../engine/flash/rules/outcome.ts'
import type { Flasher } from '../../../engine/flash/flasher.ts'
import { Fault } from '../../../kit/foundation/fault.ts'
import { fill } from '../../../kit/texts/text.ts'
import { WIZARD_TEXTS } from '../../texts/texts.ts'
import type { FlashOrder } from '../../../engine/flash/flash-planner.ts'
import type { ManyFlasher } from '../../../engine/flash/many/many-flasher.ts'
import type { FlashChoice, FlashChoices, Flashed, Hooks } from './start.ts'

interface FlashRunOptions {
  readonly loadFlasher: () => Promise<Flasher>
  readonly loadManyFlasher: () => Promise<ManyFlasher>
  /** Cancels. */
  readonly signal: AbortSignal
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
  /** This is called when one of several disks is done with; `disk` is its path. */
  readonly onEnd: (end: FlashOutcome, disk: string) => void
}

/**
 * Flashes what was chosen and never throws. `hooks.onEnd` is the caller's: what it says needs a
 * screen.
 */
export async function runChoices(
  choices: FlashChoices,
  hooks: Hooks,
  options: FlashRunOptions,
): Promise<Pick<Flashed, 'end' | 'ends'>> {
  const [first, ...more] = choices
  const targets = choices.map(orderFor)
  const watched: FlashRunOptions = {
    ...options,
    onEvent(event, plan) {
      options.onEvent(event, plan)
      if (plan.target.path === first.disk) hooks.onEvent(event, first, plan)
    },
  }
  const order = orderFor(first)
  const running = more.length === 0 ? runOne(order, watched) : runSeveral(order, targets, watched)
  const ends = await running.catch((thrown: unknown) =>
    targets.map(({ target }) =>
      describeFailure(thrown, { ...UNTOUCHED, target, isAborted: options.signal.aborted }),
    ),
  )
  const named = targets.flatMap(({ target: disk }, index) => {
    const end = ends[index]
    if (end === undefined || end.kind === 'done') return []
    return [{ ...end, reason: fill(WIZARD_TEXTS.outcome.failedOn, { disk, reason: end.reason }) }]
  })
  const [only = describeFailure(NOT_RUN, { ...UNTOUCHED, target: first.disk })] = ends
  return more.length === 0 ? { end: only } : { end: named[0] ?? only, ends }
}

const NOT_RUN = new Fault('cancelled', WIZARD_TEXTS.prompt.cancelled)
const UNTOUCHED = { stage: 'checking', isAborted: true } as const

async function runOne(
  order: FlashOrder,
  { loadFlasher, signal, onEvent }: FlashRunOptions,
): Promise<readonly FlashOutcome[]> {
  const flasher = await loadFlasher()
  await using flash = await flasher.plan(order, signal)
  return [await flasher.run(flash, { signal, onEvent })]
}

/**
 * Flashes several disks, in the order of the targets; where one of them is refused, none is
 * written.
 */
async function runSeveral(
  order: FlashOrder,
  targets: readonly FlashOrder[],
  { loadManyFlasher, signal, onEvent, onEnd }: FlashRunOptions,
): Promise<readonly FlashOutcome[]> {
  const flasher = await loadManyFlasher()
  await using planned = await flasher.plan(order, targets, signal)
  const reasons = planned.flashes.flatMap(({ plan }) => (plan.ok ? [] : plan.refusal))
  if (reasons.length > 0) throw new Fault('plan-refused', [...new Set(reasons)].join('; '))
  return await flasher.run(planned, { signal, onEnd, onEvent })
}

/** Everything is read back; the target is a whole disk; the image stays as it is unless it shall grow. */
export const orderFor = ({
  image,
  disk,
  identity,
  grow = false,
  delta = false,
  indexSha256 = null,
  firstBoot = null,
}: FlashChoice): FlashOrder => ({
  image: image.location,
  format: image.format,
  ...(image.anyContent === true ? { anyContent: true } : {}),
  // What is here is as long as it is.
  ...(image.location.includes('://') ? { sizeBytes: image.sizeBytes } : {}),
  target: disk,
  options: {
    verify: 'data',
    sha256: image.sha256,
    allowPartition: false,
    fixGpt: false,
    grow,
    delta,
    indexSha256,
  },
  chosen: identity,
  firstBoot,
})
