/** The confirm screen of a capture: what is read and how, where it goes, whether the identity is cleared. */
import { hintOf, renderError } from '#kit/foundation/fault.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import { checkCapture, type ChosenCapture, makeCapture } from './capture-run.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { canClear, renderCapture, type CaptureKnown } from './capture-text.ts'
import { askMeanwhile, NO_KEY, QUIT_KEY, type WizardContext } from '../screens/pending-question.ts'
import type { ScreenView } from '../screens/screen-layout.ts'
import { renderWaiting } from '#flasher/text/rules/progress-text.ts'
import type { WriteProgress } from '#engine/flash/rules/flash.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration, renderSize } from '#kit/foundation/size.ts'
import type { OpenedCapture } from '#engine/capture/capturer.ts'
import { renderBar, createProgress } from '#flasher/text/progress.ts'
import { renderDestination, type CaptureOutcome } from '#engine/capture/rules/capture.ts'
import { openProgressScreen } from '../screens/flashing.ts'

/** The screen of a capture that runs: a bar with progress, rate and time left; Ctrl-C cancels. */
interface ShownCapture {
  phase: string
  progress: WriteProgress | null
  storedBytes: number
}

async function runCapturing(
  state: WizardState,
  chosen: ChosenCapture,
  opened: OpenedCapture,
  context: WizardContext,
): Promise<CaptureOutcome> {
  const { env, isRoot, style } = context
  const cancelling = new AbortController()
  const signal = AbortSignal.any([context.signal, cancelling.signal])
  const shown: ShownCapture = {
    phase: 'reading the disk',
    progress: null,
    storedBytes: 0,
  }
  using screen = openProgressScreen(state, context, {
    render: (seconds, columns) => renderBody(chosen, shown, context, { seconds, columns }),
    phase: () => shown.phase,
    cancel() {
      shown.phase = 'cancelling ...'
      cancelling.abort()
    },
  })
  const log = style.tty ? null : createLines(context)
  return await makeCapture(
    chosen,
    opened,
    { env, isRoot, signal },
    {
      onProgress(progress) {
        shown.progress = progress
        log?.show(progress)
      },
      onStored(bytes) {
        shown.storedBytes = bytes
      },
      onSent() {
        shown.phase = 'the image cache verifies the image ...'
        screen.draw()
      },
    },
  )
}

/** For terminals that cannot redraw. */
const createLines = ({ stdout, style, now }: WizardContext) =>
  createProgress('text', { stdout, stderr: stdout, style, now, storedBytes: () => null })

function renderBody(
  { disk, destination }: ChosenCapture,
  { phase, progress, storedBytes }: ShownCapture,
  { drawing: { ink }, style }: WizardContext,
  { seconds, columns }: { readonly seconds: number; readonly columns: number },
): readonly string[] {
  const time = renderDuration(seconds)
  const bar = { columns, unicode: style.unicode, storedBytes: null, isReading: true }
  return [
    ink.strong(printable(`${disk.path} -> ${renderDestination(destination)}`)),
    '',
    progress === null ? '' : renderBar(progress, bar),
    '',
    renderWaiting(phase, progress),
    ink.faint(`${renderSize(storedBytes)} of the image made, ${time} so far`),
    '',
    ink.faint('Ctrl-C cancels, and nothing is left of the image. ? shows help.'),
  ]
}

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
const YES: MenuKey = { key: 'y', words: ['yes'], does: 'CAPTURE', isInstant: true }

function viewOf(known: CaptureKnown, { drawing }: WizardContext): ScreenView {
  const isFree = known.reasons?.length === 0
  const does = known.generalize ? 'keep identity' : 'clear identity'
  const clear: MenuKey = { key: 'g', words: ['generalize'], does, isInstant: true }
  return {
    menu: {
      prompt: isFree ? 'Capture' : 'Back',
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES] : []), ...(canClear(known) ? [clear] : []), NO_KEY, QUIT_KEY],
      enter: 'b',
    },
    intro: (size, room) => renderCapture(known, drawing, { ...size, room }),
  }
}
