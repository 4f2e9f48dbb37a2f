/** The confirm screen: image and disks, what is lost, and whether the flash is possible. */
import { renderError } from '#kit/foundation/fault.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import type { PlannedDisk } from '#engine/flash/flash-planner.ts'
import { renderConfirm, type KnownPlan } from './confirm-text.ts'
import type { WizardContext } from './wizard-context.ts'
import { choiceOf, type WizardState, type WizardStep } from '../flow/flow.ts'
import { orderFor } from '#flasher/order/rules/flash-choice.ts'
import type { FlashChoices } from '#flasher/order/rules/flash-choice.ts'
import type { TemplateOffer } from '#flasher/order/rules/wizard-start.ts'
import type { ScreenView } from './screen-layout.ts'
import { askMeanwhile, askStill, NO_KEY, QUIT_KEY } from './pending-question.ts'

const TEXTS = WIZARD_TEXTS.confirm
const { keys: KEYS } = WIZARD_TEXTS

type Learned = { -readonly [Name in keyof KnownPlan]: KnownPlan[Name] }

/** Only what passed all checks can be confirmed. */
export async function confirm(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const known: Learned = {
    plan: null,
    found: [],
    reasons: null,
    template: null,
    isTemplateWritten: true,
  }
  const view = () => viewOf(state, known, context)
  let asked = await askMeanwhile(state, view, context, (changed, signal) =>
    check(state, known, context, signal).then(changed),
  )
  // The key appears once all is checked.
  while (asked.kind === 'key' && asked.key === 't') {
    known.isTemplateWritten = !known.isTemplateWritten
    asked = await askStill(state, view(), context)
  }
  if (asked.kind !== 'key' || asked.key === 'q') return { step: 'quit' }
  return asked.key === 'y' ? { step: 'flash', template: chosenOf(known) } : { step: 'back' }
}

const chosenOf = ({ template, isTemplateWritten }: KnownPlan) =>
  template?.kind === 'template' && isTemplateWritten ? template : null

async function check(
  state: WizardState,
  known: Learned,
  context: WizardContext,
  signal: AbortSignal,
): Promise<void> {
  const choices = choiceOf(state)
  if (choices === null) return
  try {
    const hooks = await context.loadHooks()
    const offering = hooks.findTemplate()
    const plans = await planAll(choices, context, signal)
    const disks = await context.surveyDisks()
    known.found = await Promise.all(
      choices.map(async (choice) => {
        const disk = disks.find(({ path }) => path === choice.disk)
        return disk === undefined ? null : await context.fillContents(disk)
      }),
    )
    known.plan = plans.flatMap((plan) => (plan.ok ? [plan.value] : []))[0] ?? null
    known.template = decideTemplate(await offering, choices.length)
    const rights = context.isRoot ? [] : [TEXTS.rootNeeded]
    const refusals = plans.flatMap((plan) => (plan.ok ? [] : plan.refusal))
    known.reasons = [...new Set(refusals), ...rights]
  } catch (thrown) {
    known.reasons = [renderError(thrown)]
  }
}

/** A template is for one machine, and several disks are for several. */
const decideTemplate = (offer: TemplateOffer | null, disks: number): TemplateOffer | null =>
  offer?.kind === 'template' && disks > 1
    ? { kind: 'unavailable', reason: TEXTS.templateForOne }
    : offer

async function planAll(
  choices: FlashChoices,
  context: WizardContext,
  signal: AbortSignal,
): Promise<readonly PlannedDisk['plan'][]> {
  const flasher = await context.loadFlasher()
  await using planned = await flasher.plan(orderFor(choices), signal)
  return planned.disks.map(({ plan }) => plan)
}

/** The one key that erases a disk: nothing else on the way asks for it. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: KEYS.flash, isInstant: true }

const keyOfTemplate = (isWritten: boolean): MenuKey => ({
  key: 't',
  words: ['template'],
  does: isWritten ? KEYS.withoutTemplate : KEYS.withTemplate,
  isInstant: true,
})

function viewOf(state: WizardState, known: KnownPlan, { drawing }: WizardContext): ScreenView {
  const isFree = known.reasons?.length === 0
  const choice = known.template?.kind === 'template' ? [keyOfTemplate(known.isTemplateWritten)] : []
  return {
    menu: {
      prompt: isFree ? TEXTS.promptFlash : TEXTS.promptBack,
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES, ...choice] : []), NO_KEY, QUIT_KEY],
      enter: 'b',
    },
    intro: (size, room) => renderConfirm(state, known, drawing, { ...size, room }),
  }
}
