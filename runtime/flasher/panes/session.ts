/** Runs the panes: keys and findings go into the flow, and what it asks for is carried out. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { readKeys } from '#kit/terminal/prompt/keys.ts'
import type { Painter } from '#kit/terminal/prompt/painter.ts'
import { next } from './flow/flow.ts'
import type { ChosenFlash, Effect, Input, PaneStep, PanesState } from './flow/state.ts'
import type { PaneStyle } from './screens/pane-box.ts'
import { pageRows, renderScreen } from './screens/screen.ts'
import { orderFor, type TuiServices } from './services.ts'

interface SessionTerminal {
  readonly stdin: NodeJS.ReadStream
  readonly painter: Painter
  readonly style: PaneStyle
  /** Aborted when the process is asked to end. */
  readonly signal: AbortSignal
  /** Seconds on a steady clock. */
  readonly now: () => number
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

export async function runPanes(
  opening: PaneStep,
  services: TuiServices,
  { stdin, painter, style, signal, now }: SessionTerminal,
): Promise<PanesState> {
  let { state } = opening
  let began = now()
  let isOver = false
  const draw = () => {
    // Results after the end are not shown.
    if (!isOver) painter.paint(renderScreen(state, painter.size(), style, now() - began))
  }

  function take(input: Input) {
    const wasMoving = isMoving()
    const then = next(state, input)
    state = then.state
    if (isMoving() && !wasMoving) began = now()
    // While bytes flow the timer draws.
    if (input.input !== 'event') draw()
    then.effects.forEach(executor.perform)
  }

  const isMoving = () => state.dialog?.kind === 'flash'
  const redraw = () => {
    painter.forget()
    draw()
  }
  const executor = createExecutor({ services, signal, take, redraw })
  const timer = setInterval(() => (isMoving() ? draw() : undefined), REDRAW_MS)
  const stopResizing = painter.onResize(draw)
  try {
    using _keys = readKeys(stdin, (key) =>
      take({ input: 'key', key, pageRows: pageRows(state, painter.size()) }),
    )
    draw()
    opening.effects.forEach(executor.perform)
    await executor.ended
    return state
  } finally {
    isOver = true
    clearInterval(timer)
    stopResizing()
  }
}

interface ExecutorDependencies {
  readonly services: TuiServices
  readonly signal: AbortSignal
  take(input: Input): void
  redraw(): void
}

/** Carries out effects; decides nothing. */
function createExecutor({ services, signal, take, redraw }: ExecutorDependencies) {
  let working = new AbortController()
  const tasks = new Set<Promise<void>>()
  const { promise, resolve: end, reject: fail } = Promise.withResolvers<void>()
  signal.addEventListener('abort', () => end(), { once: true })
  if (signal.aborted) end()

  function start(work: () => Promise<void>) {
    const task = work()
      .catch(fail)
      .finally(() => tasks.delete(task))
    tasks.add(task)
  }

  /** Aborted with the program, or by a cancel. */
  function begin() {
    working = new AbortController()
    return AbortSignal.any([signal, working.signal])
  }

  async function check(choice: ChosenFlash, until: AbortSignal) {
    const checked = await services.check(choice, until)
    if (!until.aborted) take({ input: 'checked', checked })
  }

  async function flash(choice: ChosenFlash, until: AbortSignal) {
    const flasher = await services.loadFlasher()
    // Looks again at image and disk: time has passed since the question.
    const [outcome] = await flasher.flash(orderFor(choice), {
      signal: until,
      onEvent: (event, { image }) => take({ input: 'event', event, storedBytes: image.sizeBytes }),
    })
    if (outcome !== undefined) take({ input: 'ended', outcome })
  }

  const listDisks = () => services.listDisks((listing) => take({ input: 'disks', listing }))
  const listImages = async () => take({ input: 'images', listing: await services.listImages() })
  const sendDone = async () => take({ input: 'signalled', refusal: await services.sendDone() })

  const ACTS: Cases<'effect', Effect, void> = {
    'list-images': () => start(listImages),
    'list-disks': () => start(listDisks),
    check: ({ choice }) => start(() => check(choice, begin())),
    flash: ({ choice }) => start(() => flash(choice, begin())),
    cancel: () => working.abort(),
    'send-done': () => start(sendDone),
    redraw: () => redraw(),
    quit: () => end(),
  }

  return {
    perform: (effect: Effect) => decideCase(ACTS, 'effect', effect),
    // A disk that is being written is left only once its end is decided.
    ended: promise.then(() => (signal.aborted ? Promise.all(tasks) : undefined)),
  }
}
