/** The flashing screen: a bar with progress, rate and time left for each disk; Ctrl-C cancels. */
import {
  nextProgress,
  renderReadSoFar,
  renderWaiting,
  renderSuccess,
} from '#flasher/text/rules/flash-text.ts'
import type { FlashEvent, FlashPlan, WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import {
  describeFailure,
  type FlashFailure,
  type FlashOutcome,
} from '#engine/flash/rules/run-report.ts'
import { renderBar, createProgress, createManyProgress } from '#flasher/text/progress.ts'
import { pad } from '#kit/terminal/text/columns.ts'
import {
  type WizardContext,
  renderHelp,
  fitted,
  layOutScreen,
  openScreenCode,
  askChoice,
  nextChoice,
  type NextChoice,
} from './screen.ts'
import { type WizardState, type WizardStep, openState } from '../flow/flow.ts'
import {
  NO_AFTERMATH,
  type Flashed,
  type Hooks,
  type FlashChoices,
  orderFor,
  type FlashChoice,
  type DrivenScreen,
} from '#flasher/order/rules/flash-choice.ts'
import { holdKeyboard, INTERRUPT } from '#kit/terminal/prompt/keyboard.ts'
import { HELP_KEY } from '#kit/terminal/prompt/question.ts'
import type { Flasher, RunOptions } from '#engine/flash/flasher.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import { renderVoice, type Voice } from '#kit/terminal/text/voice.ts'

interface DiskShown {
  phase: string
  progress: WriteProgress | null
  /** Null: it goes on. */
  end: FlashOutcome | null
}

interface ShownFlash {
  /** Size of the stored image; null: unknown. */
  storedBytes: number | null
  /** Disks by path. */
  readonly disks: ReadonlyMap<string, DiskShown>
  /** The disk is done; the hooks report the end. */
  isReporting: boolean
  readonly said: string[]
}

/** Writes nothing where the template cannot be fetched. */
export async function runChosen(
  state: WizardState,
  [first, ...more]: FlashChoices,
  context: WizardContext,
): Promise<Flashed> {
  const hooks = await context.loadHooks()
  const fetched = state.template === null ? null : await state.template.fetch()
  if (fetched?.ok === false) {
    const refused = new Fault('plan-refused', fetched.refusal)
    const point = { target: first.disk, stage: 'checking', isAborted: false } as const
    return { end: describeFailure(refused, point), ...NO_AFTERMATH }
  }
  const firstBoot = fetched?.value ?? null
  return await runFlash(state, [{ ...first, firstBoot }, ...more], hooks, context)
}

export async function runFlash(
  state: WizardState,
  choices: FlashChoices,
  hooks: Hooks,
  context: WizardContext,
): Promise<Flashed> {
  const cancelling = new AbortController()
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, cancelling.signal])
  const shown: ShownFlash = {
    storedBytes: null,
    disks: new Map(
      choices.map(({ disk }) => [
        disk,
        { phase: 'checking image and disk ...', progress: null, end: null },
      ]),
    ),
    isReporting: false,
    said: [],
  }
  using screen = openProgressScreen(state, context, {
    render: (seconds, columns) => renderBody(choices, shown, seconds, context, columns),
    phase: () => shown.disks.get(choices[0].disk)?.phase ?? '',
    cancel() {
      if (!shown.isReporting) for (const disk of shown.disks.values()) disk.phase = 'cancelling ...'
      ;(shown.isReporting ? leaving : cancelling).abort()
    },
  })
  const log = context.style.tty ? null : createLines(shown, context)
  const onEvent = (event: FlashEvent, { image, target }: FlashPlan) => {
    shown.storedBytes = image.sizeBytes
    const known = shown.disks.get(target.path)
    if (known !== undefined) Object.assign(known, nextProgress(event, known))
    log?.show(event, target.path)
  }
  const onEnd = (end: FlashOutcome, disk: string) => {
    const known = shown.disks.get(disk)
    if (known !== undefined) known.end = end
    log?.show(end.kind === 'done' ? { event: 'done' } : failedBy(end), disk)
  }
  const ended = await runChoices(choices, hooks, { ...context, signal, onEvent, onEnd })
  const say = (line: string) => {
    shown.said.push(line)
    if (log === null) screen.draw()
    else context.stdout.write(`${printable(line)}\n`)
  }
  shown.isReporting = true
  return { ...ended, ...(await hooks.onEnd(ended.end, choices[0], say, leaving.signal)) }
}

const failedBy = ({ reason }: FlashFailure) => ({ event: 'failed', note: reason }) as const

/** For terminals that cannot redraw. */
function createLines(shown: ShownFlash, { stdout, style, now }: WizardContext) {
  const disks = [...shown.disks.keys()]
  const common = { stdout, stderr: stdout, style, now, storedBytes: () => shown.storedBytes }
  return disks.length === 1
    ? createProgress('text', common)
    : createManyProgress({ ...common, mode: 'text', disks })
}

function renderBody(
  choices: FlashChoices,
  shown: ShownFlash,
  seconds: number,
  context: WizardContext,
  columns: number,
): readonly string[] {
  const { said, isReporting } = shown
  const { ink } = context.drawing
  const time = renderDuration(seconds)
  return [
    ...(shown.disks.size === 1
      ? renderOne(choices, shown, time, context, columns)
      : renderSeveral(choices, shown, time, context, columns)),
    '',
    ...said.slice(-4).map(printable),
    ink.faint(
      isReporting
        ? 'Ctrl-C stops waiting. ? shows help.'
        : 'Ctrl-C cancels; the disk will then not boot. ? shows help.',
    ),
  ]
}

function renderOne(
  [{ image, disk }]: FlashChoices,
  { disks, storedBytes }: ShownFlash,
  time: string,
  { drawing: { ink }, style }: WizardContext,
  columns: number,
): readonly string[] {
  const { phase = '', progress = null } = disks.get(disk) ?? {}
  const bar =
    progress === null ? '' : renderBar(progress, { columns, unicode: style.unicode, storedBytes })
  return [
    ink.strong(printable(`${image.name} -> ${disk}`)),
    '',
    bar,
    '',
    renderWaiting(printable(phase), progress),
    ink.faint(renderReadSoFar(progress, storedBytes, time)),
  ]
}

function renderSeveral(
  [{ image }]: FlashChoices,
  { disks, storedBytes }: ShownFlash,
  time: string,
  { drawing: { ink }, style }: WizardContext,
  columns: number,
): readonly string[] {
  const width = Math.max(...[...disks.keys()].map((disk) => displayWidth(printable(disk))))
  const barStyle = { columns: columns - width - 1, unicode: style.unicode, storedBytes }
  const count = disks.size
  return [
    ink.strong(printable(`${image.name} -> ${count} ${count === 1 ? 'disk' : 'disks'}`)),
    '',
    ...[...disks].map(([disk, { phase, progress, end }]) => {
      const head = pad(printable(disk), width)
      if (end?.kind === 'done') return `${head} ${ink.good('done')}`
      if (end !== null) return `${head} ${ink.danger(printable(end.reason))}`
      return `${head} ${progress === null ? printable(phase) : renderBar(progress, barStyle)}`
    }),
    '',
    ink.faint(`${time} so far`),
  ]
}

/** A screen that asks nothing: drawn anew while something is done, with its help on `?`; Ctrl-C cancels. */
interface ProgressView {
  /** Below the header; `seconds`: since the first drawing. */
  render(seconds: number, columns: number): readonly string[]
  /** All that a terminal that cannot redraw shows. */
  phase(): string
  cancel(): void
}

interface ProgressScreen extends Disposable {
  draw(): void
}

/** Often enough to be lively, seldom enough for a serial line. */
const REDRAW_MS = 250

export function openProgressScreen(
  state: WizardState,
  { painter, drawing, style, stdin, stdout, now }: WizardContext,
  view: ProgressView,
): ProgressScreen {
  const before = now()
  let page: number | null = null
  const pages = () => renderHelp(state, { kind: 'none', keys: [] }, drawing, painter.size())
  const code = openScreenCode(drawing, () => {})
  const draw = () => {
    if (!style.tty) {
      stdout.write(`${view.phase()}\n`)
      return
    }
    const size = painter.size()
    const help = page === null ? undefined : pages()[page]
    const lines = () => fitted(view.render(now() - before, size.columns), size, drawing)
    const body = () => code(state, lines(), size)
    painter.paint(help ?? layOutScreen(state, body(), drawing, size))
  }
  /** `?`, or any key while the help is shown. */
  const turnPage = (typed: string) => {
    if (!style.tty || (page === null && typed !== HELP_KEY)) return
    const next = page === null ? 0 : page + 1
    page = next < pages().length ? next : null
    draw()
  }
  using undo = new DisposableStack()
  const keyboard = holdKeyboard(stdin, (chunk) => {
    if (!chunk.includes(INTERRUPT)) {
      turnPage(chunk.toString())
      return
    }
    page = null
    view.cancel()
    draw()
  })
  undo.use(keyboard)
  void keyboard.drained
  if (style.tty) {
    painter.forget()
    undo.use(setInterval(draw, REDRAW_MS))
    undo.defer(painter.onResize(draw))
  }
  draw()
  const held = undo.move()
  return { draw, [Symbol.dispose]: () => held.dispose() }
}

/** Runs a flash of the wizard, chosen by a person or by the server, from the checks to its end. */
interface FlashRunOptions extends Required<RunOptions> {
  readonly loadFlasher: () => Promise<Flasher>
}

/** Never throws. The caller calls `hooks.onEnd`; `onEnd` is called for each of several disks. */
export async function runChoices(
  choices: FlashChoices,
  hooks: Hooks,
  { loadFlasher, signal, onEvent, onEnd }: FlashRunOptions,
): Promise<Pick<Flashed, 'end' | 'ends'>> {
  const [first, ...more] = choices
  const flasher = await loadFlasher()
  const ends = await flasher.flash(
    { ...orderFor(choices), renewSource: hooks.renewSource },
    {
      signal,
      onEvent(event, plan) {
        onEvent(event, plan)
        if (plan.target.path === first.disk) hooks.onEvent(event, first, plan)
      },
      ...(more.length === 0 ? {} : { onEnd }),
    },
  )
  const named = choices.flatMap(({ disk }, index) => {
    const end = ends[index]
    if (end === undefined || end.kind === 'done') return []
    return [{ ...end, reason: `${disk}: ${end.reason}` }]
  })
  const [only = describeFailure(NOT_RUN, { ...UNTOUCHED, target: first.disk })] = ends
  return more.length === 0 ? { end: only } : { end: named[0] ?? only, ends }
}

const NOT_RUN = new Fault('cancelled', 'cancelled')
const UNTOUCHED = { stage: 'checking', isAborted: true } as const

const REBOOT = nextChoice('r', ['reboot', 'y', 'yes'], ['reboot'])
const BACK = nextChoice('b', ['back', 'disk'], ['back to the disks'])
const AGAIN = nextChoice('b', ['back', 'disk'], ['another disk, same image'])
export const QUIT = nextChoice('q', ['quit', 'exit', 'n', 'no'], ['quit'])

export async function showFailure(state: WizardState, context: WizardContext): Promise<WizardStep> {
  return await askNext(state, context, [BACK, QUIT], (voice) => explain(state, voice))
}

export async function showDone(state: WizardState, context: WizardContext): Promise<WizardStep> {
  return await askNext(state, context, listNext(context, AGAIN), (voice) => {
    praise(state.ends, voice)
    if (state.bootEntry !== null) voice.info(state.bootEntry)
  })
}

export const listNext = ({ reboot }: WizardContext, again: NextChoice): readonly NextChoice[] =>
  reboot === null ? [QUIT, again] : [REBOOT, again, QUIT]

/** Enter alone takes the first choice. `speak`: what stands above the question. */
export async function askNext(
  state: WizardState,
  context: WizardContext,
  choices: readonly NextChoice[],
  speak: (voice: Voice) => void,
): Promise<WizardStep> {
  const view = {
    prompt: 'Next',
    message: 'What next?',
    columns: [{ title: '' }],
    choices,
    intro: ({ columns }: Size) => [...renderVoice({ ...context.drawing, columns }, speak), ''],
  }
  const key = await askChoice(state, view, context)
  if (key === REBOOT.key) return { step: 'reboot' }
  return { step: key === BACK.key ? 'back' : 'quit' }
}

function explain(state: WizardState, voice: Voice): void {
  const { disks, end } = state
  if (end === null || end.kind === 'done') return
  if (end.kind === 'cancelled') voice.warn('Cancelled.')
  if (disks.length > 1) {
    explainEach(state, voice)
    return
  }
  if (end.kind === 'failed') voice.fail(`The flash failed: ${end.reason}`)
  if (end.hint !== null) voice.info(end.hint)
  voice.warn(end.leaves)
}

function explainEach({ disks, ends }: WizardState, voice: Voice): void {
  // Failures first: there may not be room for all.
  for (const [index, one] of ends.entries()) {
    const disk = disks[index]?.path ?? ''
    if (one.kind === 'done') continue
    if (one.kind === 'cancelled') voice.warn(nameDisk(one.leaves, disk))
    else voice.fail(`${nameDisk(one.reason, disk)}\n${one.leaves}`)
  }
  const hints = ends.flatMap((one) =>
    one.kind === 'failed' && one.hint !== null ? [one.hint] : [],
  )
  for (const hint of new Set(hints)) voice.info(hint)
  praise(ends, voice)
}

const nameDisk = (sentence: string, disk: string) =>
  sentence.startsWith(disk) ? sentence : `${disk}: ${sentence}`

/** More than these are one message. */
const MAX_MESSAGES = 4

function praise(ends: readonly FlashOutcome[], voice: Voice): void {
  const done = ends.flatMap((end) => (end.kind === 'done' ? [end] : []))
  if (done.length <= MAX_MESSAGES) {
    for (const end of done) voice.success(renderSuccess(end))
    return
  }
  const disks = done.map(({ plan }) => plan.target.path).join(', ')
  const isVerified = done.every(({ verified }) => verified)
  voice.success(isVerified ? `Done and verified: ${disks}.` : `Done, not verified: ${disks}.`)
}

// The terminal while a server drives: lines below the header, and its flashes on the flashing screen.

/** No terminal shows more of the last lines. */
const MAX_LINES = 12

/** `server`: as named; where it answers is known later. */
export function createDrivenScreen(given: WizardContext, server: string): DrivenScreen {
  const identity = { ...given.drawing.setting.identity, server }
  // A machine that the server has flashed is restarted, too.
  const setting = { ...given.drawing.setting, identity, reboots: true }
  const drawing = { ...given.drawing, setting }
  const context = { ...given, drawing }
  const { painter, style, stdout } = context
  const said: string[] = []
  const state: WizardState = {
    ...openState({ screen: 'catalog', catalog: "the server's plan", notice: null, identity }),
    screen: 'flash',
  }

  const stateOf = ({
    image,
    disk: path,
    identity: seen,
    words = '',
  }: FlashChoice): WizardState => ({
    ...state,
    image,
    disks: seen === null ? [] : [{ path, identity: seen, words }],
  })

  const code = openScreenCode(drawing, draw)

  function draw() {
    const size = painter.size()
    const steps = renderVoice({ ...drawing, columns: size.columns }, (voice) =>
      said.forEach((line) => voice.start(line)),
    )
    painter.paint(layOutScreen(state, code(state, steps.slice(-MAX_LINES), size), drawing, size))
  }

  return {
    identity,
    say(line) {
      said.push(line)
      if (style.tty) draw()
      else stdout.write(`${printable(line)}\n`)
    },
    async runFlash(choice, hooks) {
      const flashed = await runFlash(stateOf(choice), [choice], hooks, context)
      painter.forget()
      return flashed
    },
  }
}
