/** The two screens after a flash: success, or why it failed. */
import { renderSuccess } from '../../../../core/flash/progress-text.ts'
import { fill } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { renderVoice, type Voice } from '../../../../terminal/text/voice.ts'
import type { WizardContext } from './wizard-context.ts'
import type { State, Step } from '../flow/flow.ts'
import { createChoice, type NextChoice } from './screen-frame.ts'
import type { FlashOutcome } from '../../../../core/flash/outcome.ts'
import { stillSubject } from './pending-question.ts'

const TEXTS = WIZARD_TEXTS.outcome

const choiceOf = (key: string, does: string, ...words: readonly string[]): NextChoice => ({
  key,
  words,
  cells: [`[${key}] ${does}`],
  refusal: null,
})

const REBOOT = choiceOf('r', TEXTS.choices.reboot, 'reboot', 'y', 'yes')
const BACK = choiceOf('b', TEXTS.choices.disks, 'back', 'disk')
const AGAIN = choiceOf('b', TEXTS.choices.again, 'back', 'disk')
const QUIT = choiceOf('q', TEXTS.choices.quit, 'quit', 'exit', 'n', 'no')

export async function showFailure(state: State, context: WizardContext): Promise<Step> {
  const key = await askNext(state, context, [BACK, QUIT], (voice) => explain(state.end, voice))
  return { step: key === 'b' ? 'back' : 'quit' }
}

export async function showDone(state: State, context: WizardContext): Promise<Step> {
  const choices = context.reboot === null ? [QUIT, AGAIN] : [REBOOT, AGAIN, QUIT]
  const key = await askNext(state, context, choices, (voice) => {
    voice.success(renderSuccess(state.end))
    if (state.bootEntry !== null) voice.info(state.bootEntry)
  })
  if (key === 'r') return { step: 'reboot' }
  return { step: key === 'b' ? 'back' : 'quit' }
}

/** The key of what comes next; Enter alone takes the first choice. */
async function askNext(
  state: State,
  context: WizardContext,
  choices: readonly NextChoice[],
  speak: (voice: Voice) => void,
): Promise<string> {
  const { ink, unicode } = context.drawing
  const view = {
    prompt: TEXTS.prompt,
    message: TEXTS.question,
    columns: [{ title: '' }],
    choices,
    intro: ({ columns }: Size) => [...renderVoice({ ink, unicode, columns }, speak), ''],
  }
  const asked = await context.ask(stillSubject(createChoice(state, view, context.drawing)))
  if (asked.kind === 'row') return choices[asked.index]?.key ?? 'q'
  return asked.kind === 'key' ? asked.key : 'q'
}

function explain(end: FlashOutcome | null, voice: Voice): void {
  if (end === null || end.kind === 'done') return
  if (end.kind === 'cancelled') voice.warn(TEXTS.cancelled)
  else voice.fail(fill(TEXTS.failed, { reason: end.reason }))
  if (end.hint !== null) voice.info(end.hint)
  voice.warn(end.leaves)
}
