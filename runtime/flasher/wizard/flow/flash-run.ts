/** Runs a flash of the wizard, chosen by a person or by the server, from the checks to its end. */
import { WHOLE_DISK, type FlashOrder } from '../../../engine/flash/rules/flash.ts'
import { describeFailure } from '../../../engine/flash/rules/outcome.ts'
import type { Flasher, RunOptions } from '../../../engine/flash/flasher.ts'
import { Fault } from '../../../kit/foundation/fault.ts'
import { fill } from '../../../kit/texts/text.ts'
import { WIZARD_TEXTS } from '../../texts/texts.ts'
import type { FlashChoices, Flashed, Hooks } from './start.ts'

interface FlashRunOptions extends Required<RunOptions> {
  readonly loadFlasher: () => Promise<Flasher>
}

/**
 * Runs the flash and never throws. `hooks.onEnd` is for the caller: what it says needs a screen.
 * `onEnd` is called for each of several disks.
 */
export async function runChoices(
  choices: FlashChoices,
  hooks: Hooks,
  { loadFlasher, signal, onEvent, onEnd }: FlashRunOptions,
): Promise<Pick<Flashed, 'end' | 'ends'>> {
  const [first, ...more] = choices
  const flasher = await loadFlasher()
  const ends = await flasher.flash(orderFor(choices), {
    signal,
    onEvent(event, plan) {
      onEvent(event, plan)
      if (plan.target.path === first.disk) hooks.onEvent(event, first, plan)
    },
    ...(more.length === 0 ? {} : { onEnd }),
  })
  const named = choices.flatMap(({ disk }, index) => {
    const end = ends[index]
    if (end === undefined || end.kind === 'done') return []
    return [{ ...end, reason: fill(WIZARD_TEXTS.outcome.failedOn, { disk, reason: end.reason }) }]
  })
  const [only = describeFailure(NOT_RUN, { ...UNTOUCHED, target: first.disk })] = ends
  return more.length === 0 ? { end: only } : { end: named[0] ?? only, ends }
}

const NOT_RUN = new Fault('cancelled', WIZARD_TEXTS.prompt.cancelled)
const UNTOUCHED = { stage: 'checking', isAborted: true } as const

/**
 * Makes the order for the flasher. Everything is read back; the target is a whole disk; the image
 * stays as it is unless it shall grow.
 */
export function orderFor(choices: FlashChoices): FlashOrder {
  const [{ image, grow = false, delta = false, indexSha256 = null, firstBoot = null, sources }] =
    choices
  return {
    image: image.location,
    ...(sources === undefined ? {} : { sources }),
    format: image.format,
    ...(image.anyContent === true ? { anyContent: true } : {}),
    // What is here is as long as it is.
    ...(image.location.includes('://') ? { sizeBytes: image.sizeBytes } : {}),
    targets: choices.map(({ disk, identity }) => ({ path: disk, chosen: identity })),
    options: { ...WHOLE_DISK, sha256: image.sha256, grow, delta, indexSha256 },
    firstBoot,
  }
}
