/** Runs a flash of the wizard, chosen by a person or by the server, from the checks to its end. */
import { describeFailure } from '#engine/flash/rules/outcome.ts'
import type { Flasher, RunOptions } from '#engine/flash/flasher.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { fill } from '#kit/texts/text.ts'
import { PROMPT_TEXTS } from '#kit/terminal/prompt/texts.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { orderFor, type FlashChoices } from '#flasher/order/rules/flash-choice.ts'
import type { Flashed, Hooks } from '#flasher/order/rules/wizard-start.ts'

interface FlashRunOptions extends Required<RunOptions> {
  readonly loadFlasher: () => Promise<Flasher>
}

/** Never throws. The caller calls `hooks.onEnd`; `onEnd` is called for each of several disks. */
export async function runChoices(
  choices: FlashChoices,
  hooks: Hooks,
  { loadFlasher, signal, onEvent, onEnd }: FlashRunOptions,
): Promise<Pick<Flashed, 'end' | 'ends'>> {
  const [first, ...more] = choices
  const flasher = await loadFlasher()
  const ends = await flasher.flash(
    { ...orderFor(choices), renewSource: hooks.renewSource },
    {
      signal,
      onEvent(event, plan) {
        onEvent(event, plan)
        if (plan.target.path === first.disk) hooks.onEvent(event, first, plan)
      },
      ...(more.length === 0 ? {} : { onEnd }),
    },
  )
  const named = choices.flatMap(({ disk }, index) => {
    const end = ends[index]
    if (end === undefined || end.kind === 'done') return []
    return [{ ...end, reason: fill(WIZARD_TEXTS.outcome.failedOn, { disk, reason: end.reason }) }]
  })
  const [only = describeFailure(NOT_RUN, { ...UNTOUCHED, target: first.disk })] = ends
  return more.length === 0 ? { end: only } : { end: named[0] ?? only, ends }
}

const NOT_RUN = new Fault('cancelled', PROMPT_TEXTS.cancelled)
const UNTOUCHED = { stage: 'checking', isAborted: true } as const
