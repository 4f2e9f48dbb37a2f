/** The flashing screen: a bar with progress, rate and time left; Ctrl-C cancels. */
import {
  renderPhase,
  renderReadSoFar,
  renderWaiting,
} from '../../../../core/flash/progress-text.ts'
import type { FlashEvent, FlashPlan, WriteProgress } from '../../../../core/flash/flash.ts'
import { describeFailure } from '../../../../core/flash/outcome.ts'
import { Fault } from '../../../../core/foundation/fault.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDuration } from '../../../../core/foundation/rate.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import { renderBar } from '../../../../terminal/text/bar.ts'
import { HELP_KEY } from '../../../../terminal/prompt/question.ts'
import { holdKeyboard, INTERRUPT } from '../../../../terminal/prompt/keyboard.ts'
import { createProgress } from '../../../../terminal/text/progress.ts'
import type { WizardContext } from './wizard-context.ts'
import type { State } from '../flow/flow.ts'
import { renderHelp } from './help.ts'
import { fitted, frameOf } from './screen-frame.ts'
import { runChoice } from '../flow/flash-run.ts'
import { NO_AFTERMATH, type FlashChoice, type Flashed, type Hooks } from '../flow/start.ts'

const TEXTS = WIZARD_TEXTS.flashing

/** What is shown. */
interface Shown {
  /** Of the image as stored; null where they are not known, or not yet. */
  storedBytes: number | null
  phase: string
  progress: WriteProgress | null
  /** The disk is done with; the hooks report the end. */
  isReporting: boolean
  readonly said: string[]
  /** The page of the help that is shown; null: none. */
  page: number | null
}

/** What a person chose; the template is fetched now, and nothing is written where that fails. */
export async function runChosen(
  state: State,
  choice: FlashChoice,
  context: WizardContext,
): Promise<Flashed> {
  const hooks = await context.loadHooks()
  const fetched = state.template === null ? null : await state.template.fetch()
  if (fetched?.ok === false) {
    const refused = new Fault('plan-refused', fetched.refusal)
    const point = { target: choice.disk, stage: 'checking', isAborted: false } as const
    return { end: describeFailure(refused, point), ...NO_AFTERMATH }
  }
  const firstBoot = fetched?.value ?? null
  return await runFlash(state, { ...choice, firstBoot }, hooks, context)
}

/** From the checks to the end, hooks included; asks nothing. */
export async function runFlash(
  state: State,
  choice: FlashChoice,
  hooks: Hooks,
  context: WizardContext,
): Promise<Flashed> {
  const cancelling = new AbortController()
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, cancelling.signal])
  const shown: Shown = {
    storedBytes: null,
    phase: TEXTS.checking,
    progress: null,
    isReporting: false,
    said: [],
    page: null,
  }
  const screen = context.look.live
    ? liveScreen(state, choice, shown, context)
    : logScreen(shown, context)
  using keyboard = holdKeyboard(context.stdin, (chunk) => {
    if (!chunk.includes(INTERRUPT)) {
      screen.help(chunk.toString())
      return
    }
    shown.page = null
    if (!shown.isReporting) shown.phase = TEXTS.cancelling
    screen.draw()
    ;(shown.isReporting ? leaving : cancelling).abort()
  })
  void keyboard.drained
  using drawing = screen
  drawing.draw()
  const onEvent = (event: FlashEvent, { image }: FlashPlan) => {
    shown.storedBytes = image.sizeBytes
    take(event, shown)
    screen.event(event)
  }
  const flasher = await context.loadFlasher()
  const end = await runChoice(choice, hooks, { flasher, signal, onEvent })
  const say = (line: string) => {
    shown.said.push(line)
    screen.said(line)
  }
  shown.isReporting = true
  return { end, ...(await hooks.onEnd(end, choice, say, leaving.signal)) }
}

const PHASES: { readonly [Name in FlashEvent['event']]?: string } = {
  started: TEXTS.preparing,
  provisioning: TEXTS.firstBoot,
  synced: TEXTS.partitions,
  partprobed: TEXTS.done,
}

function take(event: FlashEvent, shown: Shown) {
  if (event.event === 'writing') {
    if (event.phase !== shown.progress?.phase) shown.phase = renderPhase(event, shown.progress)
    shown.progress = event
  } else {
    shown.phase = PHASES[event.event] ?? shown.phase
  }
}

interface Screen extends Disposable {
  draw(): void
  event(event: FlashEvent): void
  said(line: string): void
  /** Something was typed: `?`, or any key while the help is shown. */
  help(typed: string): void
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

function liveScreen(
  state: State,
  choice: FlashChoice,
  shown: Shown,
  context: WizardContext,
): Screen {
  const { painter, drawing, now } = context
  const before = now()
  const pages = () => renderHelp(state, { kind: 'none', keys: [] }, drawing, painter.size())
  const draw = () => {
    const size = painter.size()
    const help = shown.page === null ? undefined : pages()[shown.page]
    if (help !== undefined) {
      painter.paint(help)
      return
    }
    const body = renderBody(choice, shown, now() - before, context, size.columns)
    painter.paint(frameOf(state, fitted(body, size, drawing), drawing, size))
  }
  painter.forget()
  const timer = setInterval(draw, REDRAW_MS)
  const stopResizing = painter.onResize(draw)
  return {
    draw,
    event: () => {},
    said: draw,
    help(typed) {
      if (shown.page === null && typed !== HELP_KEY) return
      const page = shown.page === null ? 0 : shown.page + 1
      shown.page = page < pages().length ? page : null
      draw()
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      stopResizing()
    },
  }
}

/** One line at a time, for terminals that cannot redraw. */
function logScreen(shown: Shown, { stdout, look, now }: WizardContext): Screen {
  const storedBytes = () => shown.storedBytes
  const progress = createProgress('text', { stdout, stderr: stdout, look, now, storedBytes })
  return {
    draw: () => stdout.write(`${shown.phase}\n`),
    event: (event) => progress.show(event),
    said: (line) => stdout.write(`${printable(line)}\n`),
    help: () => {},
    [Symbol.dispose]: () => {},
  }
}

function renderBody(
  choice: FlashChoice,
  { storedBytes, phase, progress, said, isReporting }: Shown,
  seconds: number,
  { drawing, look }: WizardContext,
  columns: number,
): readonly string[] {
  const { ink } = drawing
  const bar =
    progress === null ? '' : renderBar(progress, { columns, unicode: look.unicode, storedBytes })
  return [
    ink.strong(printable(`${choice.image.name} -> ${choice.disk}`)),
    '',
    bar,
    '',
    renderWaiting(printable(phase), progress),
    ink.faint(renderReadSoFar(progress, storedBytes, renderDuration(seconds))),
    '',
    ...said.slice(-4).map(printable),
    ink.faint(isReporting ? TEXTS.stopReporting : TEXTS.cancel),
  ]
}
