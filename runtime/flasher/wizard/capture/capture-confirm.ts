/** The confirm screen of a capture: what is read and how, where it goes, whether the identity is cleared. */
import { hintOf, renderError } from '#kit/foundation/fault.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import { checkCapture, type ChosenCapture } from './capture-run.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { canClear, renderCapture, type CaptureKnown } from './capture-text.ts'
import { runCapturing } from './capturing.ts'
import { askMeanwhile, NO_KEY, QUIT_KEY } from '../screens/pending-question.ts'
import type { ScreenView } from '../screens/screen-layout.ts'
import type { WizardContext } from '../screens/wizard-context.ts'

const { confirm: TEXTS, keys: CAPTURE_KEYS } = WIZARD_TEXTS.capture

/** The disk that was looked at stays held until the image is complete. */
export async function confirmCapture(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const [disk] = state.disks
  const destination = state.capture?.destination ?? null
  if (disk === undefined || destination === null) return { step: 'back' }
  for (let generalize = false; ; generalize = !generalize) {
    const step = await askAndRun(state, { disk, destination, generalize }, context)
    if (step !== null) return step
  }
}

/** Null: ask again with the other answer. */
async function askAndRun(
  state: WizardState,
  chosen: ChosenCapture,
  context: WizardContext,
): Promise<WizardStep | null> {
  await using held = new AsyncDisposableStack()
  let known: CaptureKnown = { ...chosen, checked: null, reasons: null }
  let looking = Promise.resolve()
  const view = () => viewOf(known, context)
  const asked = await askMeanwhile(state, view, context, (changed, signal) => {
    looking = checkCapture(chosen, { ...context, signal }).then(
      (checked) => {
        known = { ...known, checked: held.use(checked), reasons: [] }
      },
      (thrown) => {
        known = { ...known, reasons: [renderError(thrown), hintOf(thrown) ?? []].flat() }
      },
    )
    return looking.then(changed)
  })
  // The disk must be free before it is opened anew.
  await looking
  if (asked.kind !== 'key' || asked.key === 'q') return { step: 'quit' }
  if (asked.key === 'g') return null
  const { checked } = known
  if (asked.key !== 'y' || checked === null) return { step: 'back' }
  return { step: 'captured', end: await runCapturing(state, chosen, checked.opened, context) }
}

/** One key, but one that nothing else on the way here asks for. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: CAPTURE_KEYS.capture, isInstant: true }

function viewOf(known: CaptureKnown, { drawing }: WizardContext): ScreenView {
  const isFree = known.reasons?.length === 0
  const does = known.generalize ? CAPTURE_KEYS.keep : CAPTURE_KEYS.clear
  const clear: MenuKey = { key: 'g', words: ['generalize'], does, isInstant: true }
  return {
    menu: {
      prompt: isFree ? TEXTS.prompt : WIZARD_TEXTS.confirm.promptBack,
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES] : []), ...(canClear(known) ? [clear] : []), NO_KEY, QUIT_KEY],
      enter: 'b',
    },
    intro: (size, room) => renderCapture(known, drawing, { ...size, room }),
  }
}
