/** The two screens after a flash: success, or why it failed. */
import { renderSuccess } from '#flasher/text/rules/progress-text.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import { renderVoice, type Voice } from '#kit/terminal/text/voice.ts'
import { type WizardContext, askChoice } from './pending-question.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { nextChoice, type NextChoice } from './screen-layout.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'

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
