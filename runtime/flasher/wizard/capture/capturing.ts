/** The screen of a capture that runs: a bar with progress, rate and time left; Ctrl-C cancels. */
import { renderWaiting } from '#flasher/text/rules/progress-text.ts'
import type { WriteProgress } from '#engine/flash/rules/flash.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/rate.ts'
import { renderSize } from '#kit/foundation/size.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { OpenedCapture } from '#engine/capture/capturer.ts'
import { renderBar } from '#flasher/text/bar.ts'
import { createProgress } from '#flasher/text/progress.ts'
import {
  renderDestination,
  type CaptureOutcome,
} from '#engine/capture/rules/capture-destination.ts'
import { makeCapture, type ChosenCapture } from './capture-run.ts'
import type { WizardState } from '../flow/flow.ts'
import { openProgressScreen } from '../screens/progress-screen.ts'
import type { WizardContext } from '../screens/wizard-context.ts'

const TEXTS = WIZARD_TEXTS.capture.run

interface ShownCapture {
  phase: string
  progress: WriteProgress | null
  storedBytes: number
}

export async function runCapturing(
  state: WizardState,
  chosen: ChosenCapture,
  opened: OpenedCapture,
  context: WizardContext,
): Promise<CaptureOutcome> {
  const { env, isRoot, style } = context
  const cancelling = new AbortController()
  const signal = AbortSignal.any([context.signal, cancelling.signal])
  const shown: ShownCapture = { phase: TEXTS.reading, progress: null, storedBytes: 0 }
  using screen = openProgressScreen(state, context, {
    render: (seconds, columns) => renderBody(chosen, shown, context, { seconds, columns }),
    phase: () => shown.phase,
    cancel() {
      shown.phase = TEXTS.cancelling
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
        shown.phase = TEXTS.verifying
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
    ink.faint(fill(TEXTS.stored, { size: renderSize(storedBytes), time })),
    '',
    ink.faint(TEXTS.cancel),
  ]
}
