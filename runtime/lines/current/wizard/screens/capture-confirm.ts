/** The confirm screen of a capture: what is read and how, where it goes, whether the identity is cleared. */
import { hintOf, renderError } from '../../../../core/foundation/fault.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { MenuKey } from '../../../../terminal/prompt/menu.ts'
import type { Asked } from '../../../../terminal/prompt/question.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { checkCapture, type CheckedCapture, type ChosenCapture } from '../flow/capture-run.ts'
import type { State, Step } from '../flow/flow.ts'
import { canClear, renderCapture, type CaptureKnown } from './capture-text.ts'
import { runCapturing } from './capturing.ts'
import { createSubject } from './pending-question.ts'
import { createQuestion } from './screen-frame.ts'
import type { WizardContext } from './wizard-context.ts'

const { keys: KEYS } = WIZARD_TEXTS
const { confirm: TEXTS, keys: CAPTURE_KEYS } = WIZARD_TEXTS.capture

/** Asks, and makes the image: the disk that was looked at stays held until it is complete. */
export async function confirmCapture(state: State, context: WizardContext): Promise<Step> {
  const [disk] = state.disks
  const place = state.capture?.place ?? null
  if (disk === undefined || place === null) return { step: 'back' }
  for (let generalize = false; ; generalize = !generalize) {
    const step = await askAndRun(state, { disk, place, generalize }, context)
    if (step !== null) return step
  }
}

/** Null: it is to be asked anew, the other way. */
async function askAndRun(
  state: State,
  chosen: ChosenCapture,
  context: WizardContext,
): Promise<Step | null> {
  await using stack = new AsyncDisposableStack()
  const { asked, checked } = await askOnce(state, chosen, context)
  if (checked !== null) stack.use(checked)
  if (asked.kind !== 'key' || asked.key === 'q') return { step: 'quit' }
  if (asked.key === 'g') return null
  if (asked.key !== 'y' || checked === null) return { step: 'back' }
  return { step: 'captured', end: await runCapturing(state, chosen, checked.opened, context) }
}

interface Answer {
  readonly asked: Asked
  /** Null: it cannot be captured, or nobody waited for the look. */
  readonly checked: CheckedCapture | null
}

async function askOnce(
  state: State,
  chosen: ChosenCapture,
  context: WizardContext,
): Promise<Answer> {
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, leaving.signal])
  let known: CaptureKnown = { ...chosen, checked: null, reasons: null }
  let held: CheckedCapture | null = null
  const looking = checkCapture(chosen, { ...context, signal }).then(
    (checked) => {
      held = checked
      known = { ...known, checked, reasons: [] }
    },
    (thrown) => {
      known = { ...known, reasons: [renderError(thrown), hintOf(thrown) ?? []].flat() }
    },
  )
  const draw = () => createQuestion(state, viewOf(known, context), context.drawing)
  const asked = await context.ask(createSubject(draw, (changed) => looking.then(changed)))
  leaving.abort()
  // The disk is free before it is opened anew.
  await looking
  return { asked, checked: held }
}

const BACK: MenuKey = { key: 'b', words: ['back', 'n', 'no'], does: KEYS.back }
const QUIT: MenuKey = { key: 'q', words: ['quit', 'exit'], does: KEYS.quit }
/** One key, but one that nothing else on the way here asks for. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: CAPTURE_KEYS.capture, isInstant: true }

function viewOf(known: CaptureKnown, { drawing }: WizardContext) {
  const isFree = known.reasons?.length === 0
  const does = known.generalize ? CAPTURE_KEYS.keep : CAPTURE_KEYS.clear
  const clear: MenuKey = { key: 'g', words: ['generalize'], does, isInstant: true }
  return {
    menu: {
      prompt: isFree ? TEXTS.prompt : WIZARD_TEXTS.confirm.promptBack,
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES] : []), ...(canClear(known) ? [clear] : []), BACK, QUIT],
      enter: 'b',
    },
    intro: (size: Size, room: number) => renderCapture(known, drawing, { ...size, room }),
  }
}
