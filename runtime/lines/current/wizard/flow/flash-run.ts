/** Runs a flash of the wizard, chosen by a person or by the server, from the checks to its end. */
import type { FlashEvent, FlashPlan } from '../../../../core/flash/flash.ts'
import { describeFailure, type FlashOutcome } from '../../../../core/flash/outcome.ts'
import type { Flasher } from '../../../../services/flash/flasher.ts'
import { Fault } from '../../../../core/foundation/fault.ts'
import { fill } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { FlashOrder } from '../../../../services/flash/flash-planner.ts'
import type { ManyFlasher } from '../../../../services/many/many-flasher.ts'
import type { FlashChoice, FlashChoices, Flashed, Hooks } from './start.ts'

interface FlashRunOptions {
  readonly loadFlasher: () => Promise<Flasher>
  readonly loadManyFlasher: () => Promise<ManyFlasher>
  /** Cancels. */
  readonly signal: AbortSignal
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
  /** Called when one of several disks is done with; `disk`: its path. */
  readonly onEnd: (end: FlashOutcome, disk: string) => void
}

/** Never throws. `hooks.onEnd` is for the caller: what it says needs a screen. */
export async function runChoices(
  choices: FlashChoices,
  hooks: Hooks,
  options: FlashRunOptions,
): Promise<Pick<Flashed, 'end' | 'ends'>> {
  const [first, ...more] = choices
  if (more.length === 0) return { end: await runOne(first, hooks, options) }
  const targets = choices.map(orderFor)
  const ends = await runSeveral(first, targets, hooks, options)
  const named = targets.flatMap(({ target: disk }, index) => {
    const end = ends[index]
    if (end === undefined || end.kind === 'done') return []
    return [{ ...end, reason: fill(WIZARD_TEXTS.outcome.failedOn, { disk, reason: end.reason }) }]
  })
  const end = named[0] ?? ends[0]
  return { end: end ?? describeFailure(NOT_RUN, { ...UNTOUCHED, target: first.disk }), ends }
}

const NOT_RUN = new Fault('cancelled', WIZARD_TEXTS.prompt.cancelled)
const UNTOUCHED = { stage: 'checking', isAborted: true } as const

/** In the order of the targets; where one of them is refused, none is written. */
async function runSeveral(
  first: FlashChoice,
  targets: readonly FlashOrder[],
  hooks: Hooks,
  { loadManyFlasher, signal, onEvent, onEnd }: FlashRunOptions,
): Promise<readonly FlashOutcome[]> {
  try {
    const flasher = await loadManyFlasher()
    await using planned = await flasher.plan(orderFor(first), targets, signal)
    const reasons = planned.flashes.flatMap(({ plan }) => (plan.ok ? [] : plan.refusal))
    if (reasons.length > 0) throw new Fault('plan-refused', [...new Set(reasons)].join('; '))
    return await flasher.run(planned, {
      signal,
      onEnd,
      onEvent(event, plan) {
        onEvent(event, plan)
        if (plan.target.path === first.disk) hooks.onEvent(event, first, plan)
      },
    })
  } catch (thrown) {
    return targets.map(({ target }) =>
      describeFailure(thrown, { ...UNTOUCHED, target, isAborted: signal.aborted }),
    )
  }
}

/** Never throws. */
async function runOne(
  choice: FlashChoice,
  hooks: Hooks,
  { loadFlasher, signal, onEvent }: FlashRunOptions,
): Promise<FlashOutcome> {
  const order = orderFor(choice)
  try {
    const flasher = await loadFlasher()
    await using flash = await flasher.plan(order, signal)
    return await flasher.run(flash, {
      signal,
      onEvent(event, plan) {
        onEvent(event, plan)
        hooks.onEvent(event, choice, plan)
      },
    })
  } catch (thrown) {
    const isAborted = signal.aborted
    return describeFailure(thrown, { target: order.target, stage: 'checking', isAborted })
  }
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
