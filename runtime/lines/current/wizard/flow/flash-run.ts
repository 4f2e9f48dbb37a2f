/** Runs one flash of the wizard, chosen by a person or by the server, from the checks to its end. */
import type { FlashEvent, FlashPlan } from '../../../../core/flash/flash.ts'
import { describeFailure, type FlashOutcome } from '../../../../core/flash/outcome.ts'
import type { Flasher, FlashOrder } from '../../../../services/flash/flasher.ts'
import type { FlashChoice, Hooks } from './start.ts'

interface FlashRunOptions {
  readonly flasher: Flasher
  /** Cancels. */
  readonly signal: AbortSignal
  readonly onEvent: (event: FlashEvent, plan: FlashPlan) => void
}

/** Never throws. `hooks.onEnd` is for the caller: what it says needs a screen. */
export async function runChoice(
  choice: FlashChoice,
  hooks: Hooks,
  { flasher, signal, onEvent }: FlashRunOptions,
): Promise<FlashOutcome> {
  const order = orderFor(choice)
  try {
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
