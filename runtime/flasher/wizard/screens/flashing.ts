/** The flashing screen: a bar with progress, rate and time left for each disk; Ctrl-C cancels. */
import { nextProgress, renderReadSoFar, renderWaiting } from '#flasher/text/rules/progress-text.ts'
import type { FlashEvent, FlashPlan, WriteProgress } from '#engine/flash/rules/flash.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/rate.ts'
import {
  describeFailure,
  type FlashFailure,
  type FlashOutcome,
} from '#engine/flash/rules/outcome.ts'
import { fill, pluralOf } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { renderBar } from '#flasher/text/bar.ts'
import { pad } from '#kit/terminal/text/clip.ts'
import { createManyProgress } from '#flasher/text/many-progress.ts'
import { createProgress } from '#flasher/text/progress.ts'
import type { WizardContext } from './wizard-context.ts'
import type { WizardState } from '../flow/flow.ts'
import { openProgressScreen } from './progress-screen.ts'
import { runChoices } from '../flow/flash-run.ts'
import { NO_AFTERMATH, type Flashed, type Hooks } from '#flasher/order/rules/wizard-start.ts'
import type { FlashChoices } from '#flasher/order/rules/flash-choice.ts'

const TEXTS = WIZARD_TEXTS.flashing

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
      choices.map(({ disk }) => [disk, { phase: TEXTS.checking, progress: null, end: null }]),
    ),
    isReporting: false,
    said: [],
  }
  using screen = openProgressScreen(state, context, {
    render: (seconds, columns) => renderBody(choices, shown, seconds, context, columns),
    phase: () => shown.disks.get(choices[0].disk)?.phase ?? '',
    cancel() {
      if (!shown.isReporting) for (const disk of shown.disks.values()) disk.phase = TEXTS.cancelling
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
    ink.faint(isReporting ? TEXTS.stopReporting : TEXTS.cancel),
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
    ink.strong(printable(fill(pluralOf(TEXTS.onto, count), { image: image.name, count }))),
    '',
    ...[...disks].map(([disk, { phase, progress, end }]) => {
      const head = pad(printable(disk), width)
      if (end?.kind === 'done') return `${head} ${ink.good(TEXTS.done)}`
      if (end !== null) return `${head} ${ink.danger(printable(end.reason))}`
      return `${head} ${progress === null ? printable(phase) : renderBar(progress, barStyle)}`
    }),
    '',
    ink.faint(fill(TEXTS.soFar, { time })),
  ]
}
