/** Runs the wizard's screens one after another until the operator or a signal ends it. */
import { fill } from '../../kit/texts/text.ts'
import { WIZARD_TEXTS } from '../texts/texts.ts'
import type { WizardContext } from './screens/wizard-context.ts'
import {
  next,
  openState,
  choiceOf,
  type ScreenName,
  type WizardState,
  type WizardStep,
} from './flow/flow.ts'
import type { WizardStart } from './flow/start.ts'

type Screen = (state: WizardState, context: WizardContext) => Promise<WizardStep>

/** What each screen starts; nothing of a screen is loaded before it is shown. */
const SCREENS: Readonly<Record<ScreenName, () => Promise<Screen>>> = {
  catalog: async () => (await import('./screens/choose-source.ts')).chooseCatalog,
  source: async () => (await import('./screens/choose-source.ts')).typeSource,
  image: async () => (await import('./screens/choose-image.ts')).chooseImage,
  disk: async () => (await import('./screens/choose-disk.ts')).chooseTarget,
  confirm: async () => (await import('./screens/confirm.ts')).confirm,
  flash: async () => flash,
  failed: async () => (await import('./screens/outcome.ts')).showFailure,
  done: async () => (await import('./screens/outcome.ts')).showDone,
  'capture-disk': async () => (await import('./screens/capture-disk.ts')).chooseSource,
  'capture-place': async () => (await import('./screens/capture-place.ts')).choosePlace,
  'capture-token': async () => (await import('./screens/capture-place.ts')).typeToken,
  'capture-confirm': async () => (await import('./screens/capture-confirm.ts')).confirmCapture,
  'capture-failed': async () => (await import('./screens/capture-outcome.ts')).showCaptureFailure,
  'capture-done': async () => (await import('./screens/capture-outcome.ts')).showCaptured,
}

/** Why it ended. */
export async function runWizard(
  start: WizardStart,
  context: WizardContext,
): Promise<'quit' | 'reboot'> {
  let state = openState(start)
  for (;;) {
    const show = await SCREENS[state.screen]()
    const step = await show(state, context)
    const then = context.signal.aborted ? 'quit' : next(state, step)
    if (then === 'quit') return then
    if (then === 'reboot') {
      const refusal = await restart(context)
      if (refusal === null) return then
      state = { ...state, notice: refusal }
    } else {
      state = then
    }
  }
}

/** Null: it is under way. */
async function restart({ reboot }: WizardContext): Promise<string | null> {
  const { notRestartedFromHere, restartFailed } = WIZARD_TEXTS.program
  if (reboot === null) return notRestartedFromHere
  const outcome = await reboot()
  return outcome.ok ? null : fill(restartFailed, { reason: outcome.refusal })
}

async function flash(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const choices = choiceOf(state)
  if (choices === null) return { step: 'back' }
  const { runChosen } = await import('./screens/flashing.ts')
  return { step: 'ended', ...(await runChosen(state, choices, context)) }
}
