/** The flashing screen: one bar, how far, how fast, how long; Ctrl-C cancels. */
import type { FlashEvent, FlashPlan, WriteProgress } from '../../../../core/flash/flash.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDuration } from '../../../../core/foundation/rate.ts'
import { renderPartOf, renderSize } from '../../../../core/foundation/size.ts'
import { renderBar } from '../../../../terminal/text/bar.ts'
import { holdKeyboard, INTERRUPT } from '../../../../terminal/prompt/keyboard.ts'
import { createProgress } from '../../../../terminal/text/progress.ts'
import type { WizardContext } from './wizard-context.ts'
import type { State } from '../flow/flow.ts'
import { fitted, frameOf } from './screen-frame.ts'
import {
  NO_AFTERMATH,
  type Aftermath,
  type FlashEnd,
  type FlashOrder,
  type Hooks,
} from '../flow/start.ts'

interface Flashed extends Aftermath {
  readonly end: FlashEnd
}

/** What is shown. */
interface Shown {
  plan: FlashPlan | null
  phase: string
  progress: WriteProgress | null
  /** The write has ended; the hooks are running. */
  isTelling: boolean
  readonly said: string[]
}

/** From the checks to the end, hooks included; asks nothing. */
export async function runFlash(
  state: State,
  order: FlashOrder,
  hooks: Hooks,
  context: WizardContext,
): Promise<Flashed> {
  const cancelling = new AbortController()
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, cancelling.signal])
  const shown: Shown = {
    plan: null,
    phase: 'checking image and disk ...',
    progress: null,
    isTelling: false,
    said: [],
  }
  const screen = context.look.live
    ? liveScreen(state, order, shown, context)
    : logScreen(shown, context)
  using keyboard = holdKeyboard(context.stdin, (chunk) => {
    if (!chunk.includes(INTERRUPT)) return
    if (!shown.isTelling) shown.phase = 'cancelling ...'
    screen.draw()
    ;(shown.isTelling ? leaving : cancelling).abort()
  })
  void keyboard.drained
  using drawing = screen
  drawing.draw()
  const { parts, executeFlash } = await context.loadFlash()
  const watcher = {
    onPlan: (plan: FlashPlan) => {
      shown.plan = plan
    },
    onEvent: (event: FlashEvent) => {
      take(event, shown)
      screen.event(event)
    },
  }
  const { isRoot, now } = context
  const end = await executeFlash(order, hooks, watcher, { parts, isRoot, signal, now })
  const say = (line: string) => {
    shown.said.push(line)
    screen.said(line)
  }
  shown.isTelling = true
  const aftermath = (await hooks.onEnd?.(end, order, say, leaving.signal)) ?? NO_AFTERMATH
  return { end, ...aftermath }
}

const CANCEL = 'Ctrl-C cancels; what is half written cannot boot.'
const STOP_TELLING = 'Ctrl-C goes on without waiting.'

const PHASES: { readonly [Name in FlashEvent['event']]?: string } = {
  started: 'preparing the disk ...',
  synced: 'the kernel reads the new partitions ...',
  partprobed: 'done',
}

function take(event: FlashEvent, shown: Shown) {
  if (event.event === 'writing') {
    if (event.phase !== shown.progress?.phase) shown.phase = renderPhase(event, shown.progress)
    shown.progress = event
  } else {
    shown.phase = PHASES[event.event] ?? shown.phase
  }
}

/** What begins with this event; `before`: where the phase before it ended. */
export function renderPhase(
  { phase, total_bytes }: WriteProgress,
  before: WriteProgress | null,
): string {
  if (phase === 'write') return 'writing'
  const isLess = total_bytes !== null && total_bytes < (before?.bytes_written ?? 0)
  return `reading back what was written${isLess ? ', samples of its zeros' : ''}`
}

interface Screen extends Disposable {
  draw(): void
  event(event: FlashEvent): void
  said(line: string): void
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

function liveScreen(state: State, order: FlashOrder, shown: Shown, context: WizardContext): Screen {
  const { painter, drawing, now } = context
  const before = now()
  const draw = () => {
    const size = painter.size()
    const body = renderBody(order, shown, now() - before, context, size.columns)
    painter.paint(frameOf(state, fitted(body, size, drawing), drawing, size))
  }
  painter.forget()
  const timer = setInterval(draw, REDRAW_MS)
  const stopResizing = painter.onResize(draw)
  return {
    draw,
    event: () => {},
    said: draw,
    [Symbol.dispose]() {
      clearInterval(timer)
      stopResizing()
    },
  }
}

/** One line at a time, for terminals that cannot redraw. */
function logScreen(shown: Shown, { stdout, look, now }: WizardContext): Screen {
  const storedBytes = () => shown.plan?.image.sizeBytes ?? null
  const progress = createProgress('text', { stdout, stderr: stdout, look, now, storedBytes })
  return {
    draw: () => stdout.write(`${shown.phase}\n`),
    event: (event) => progress.show(event),
    said: (line) => stdout.write(`${printable(line)}\n`),
    [Symbol.dispose]: () => {},
  }
}

function renderBody(
  order: FlashOrder,
  { plan, phase, progress, said, isTelling }: Shown,
  seconds: number,
  { drawing, look }: WizardContext,
  columns: number,
): readonly string[] {
  const { ink } = drawing
  const storedBytes = plan?.image.sizeBytes ?? null
  const bar =
    progress === null ? '' : renderBar(progress, { columns, unicode: look.unicode, storedBytes })
  return [
    ink.strong(printable(`${order.image.name} -> ${order.disk}`)),
    '',
    bar,
    '',
    printable(phase) + waitsFor(progress),
    ink.faint([readSoFar(progress, storedBytes), `${renderDuration(seconds)} so far`].join('')),
    '',
    ...said.slice(-4).map(printable),
    ink.faint(isTelling ? STOP_TELLING : CANCEL),
  ]
}

/** Where it would have to be made faster. */
function waitsFor(progress: WriteProgress | null): string {
  const { bottleneck } = progress ?? {}
  return bottleneck === null || bottleneck === undefined ? '' : `, waiting for the ${bottleneck}`
}

function readSoFar(progress: WriteProgress | null, storedBytes: number | null): string {
  if (progress === null || progress.phase !== 'write') return ''
  const { bytes_read: read } = progress
  const amount = storedBytes === null ? renderSize(read) : renderPartOf(read, storedBytes)
  return `${amount} of the image read, `
}
