/** The confirm screen: image and disks, what is lost, and whether the flash is possible. */
import { renderError } from '../../../../core/foundation/fault.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { MenuKey } from '../../../../terminal/prompt/menu.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import type { PlannedFlash } from '../../../../services/flash/flash-planner.ts'
import { renderConfirm, type Known } from './confirm-text.ts'
import type { WizardContext } from './wizard-context.ts'
import { choiceOf, type State, type Step } from '../flow/flow.ts'
import { orderFor } from '../flow/flash-run.ts'
import type { FlashChoices } from '../flow/start.ts'
import { createQuestion } from './screen-frame.ts'
import { createSubject } from './pending-question.ts'

const TEXTS = WIZARD_TEXTS.confirm
const { keys: KEYS } = WIZARD_TEXTS

type Learned = { -readonly [Name in keyof Known]: Known[Name] }

export async function confirm(state: State, context: WizardContext): Promise<Step> {
  const known: Learned = { plan: null, found: [], reasons: null }
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, leaving.signal])
  const subject = createSubject(
    () => createQuestion(state, viewOf(state, known, context), context.drawing),
    (changed) => check(state, known, context, signal).then(changed),
  )
  const asked = await context.ask(subject)
  leaving.abort()
  if (asked.kind !== 'key') return { step: 'quit' }
  if (asked.key === 'q') return { step: 'quit' }
  return { step: asked.key === 'y' ? 'flash' : 'back' }
}

async function check(
  state: State,
  known: Learned,
  context: WizardContext,
  signal: AbortSignal,
): Promise<void> {
  const choices = choiceOf(state)
  if (choices === null) return
  try {
    const plans = await planAll(choices, context, signal)
    const disks = await context.surveyDisks()
    known.found = await Promise.all(
      choices.map(async (choice) => {
        const disk = disks.find(({ path }) => path === choice.disk)
        return disk === undefined ? null : await context.fillContents(disk)
      }),
    )
    known.plan = plans.flatMap((plan) => (plan.ok ? [plan.value] : []))[0] ?? null
    const rights = context.isRoot ? [] : [TEXTS.rootNeeded]
    const refusals = plans.flatMap((plan) => (plan.ok ? [] : plan.refusal))
    known.reasons = [...new Set(refusals), ...rights]
  } catch (thrown) {
    known.reasons = [renderError(thrown)]
  }
}

async function planAll(
  choices: FlashChoices,
  context: WizardContext,
  signal: AbortSignal,
): Promise<readonly PlannedFlash['plan'][]> {
  const [first, ...more] = choices
  if (more.length === 0) {
    const flasher = await context.loadFlasher()
    await using flash = await flasher.plan(orderFor(first), signal)
    return [flash.plan]
  }
  const flasher = await context.loadManyFlasher()
  await using all = await flasher.plan(orderFor(first), choices.map(orderFor), signal)
  return all.flashes.map(({ plan }) => plan)
}

const BACK: MenuKey = { key: 'b', words: ['back', 'n', 'no'], does: KEYS.back }
const QUIT: MenuKey = { key: 'q', words: ['quit', 'exit'], does: KEYS.quit }
/** One key, but one that nothing else on the way here asks for. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: KEYS.flash, isInstant: true }

function viewOf(state: State, known: Known, { drawing }: WizardContext) {
  const isFree = known.reasons?.length === 0
  return {
    menu: {
      prompt: isFree ? TEXTS.promptFlash : TEXTS.promptBack,
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES] : []), BACK, QUIT],
      enter: 'b',
    },
    intro: (size: Size, room: number) => renderConfirm(state, known, drawing, { ...size, room }),
  }
}
