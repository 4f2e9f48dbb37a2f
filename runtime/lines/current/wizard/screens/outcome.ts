/** The two screens after a flash: it is done, or why it is not. */
import { renderDuration } from '../../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../../core/foundation/size.ts'
import type { MenuKey } from '../../../../terminal/prompt/menu.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { renderVoice, type Voice } from '../../../../terminal/text/voice.ts'
import type { WizardContext } from './wizard-context.ts'
import type { State, Step } from '../flow/flow.ts'
import { createQuestion } from './screen-frame.ts'
import type { FlashEnd } from '../flow/start.ts'
import { stillSubject } from './pending-question.ts'

const QUIT = { key: 'q', words: ['quit', 'exit', 'n', 'no'], does: 'quit' }

export async function showFailure(state: State, context: WizardContext): Promise<Step> {
  const back = { key: 'b', words: ['back', 'disk'], does: 'back to the disks' }
  const speak = (voice: Voice) => explain(state.end, voice)
  const key = await askNext(state, context, { prompt: 'Back', keys: [back, QUIT], speak })
  return { step: key === 'b' ? 'back' : 'quit' }
}

export async function showDone(state: State, context: WizardContext): Promise<Step> {
  const canReboot = context.reboot !== null
  const reboot = { key: 'r', words: ['reboot', 'y', 'yes'], does: 'reboot' }
  const back = { key: 'b', words: ['back', 'disk'], does: 'another disk, same image' }
  const key = await askNext(state, context, {
    prompt: canReboot ? 'Reboot' : 'Done',
    keys: canReboot ? [reboot, back, QUIT] : [QUIT, back],
    speak(voice) {
      voice.success(`Done. ${renderEnd(state.end)}`)
      if (state.bootEntry !== null) voice.info(state.bootEntry)
    },
  })
  if (key === 'r') return { step: 'reboot' }
  return { step: key === 'b' ? 'back' : 'quit' }
}

interface Ending {
  readonly prompt: string
  /** The first one is what Enter alone stands for. */
  readonly keys: readonly MenuKey[]
  speak(voice: Voice): void
}

/** The key of what comes next. */
async function askNext(
  state: State,
  context: WizardContext,
  { prompt, keys, speak }: Ending,
): Promise<string> {
  const { ink, unicode } = context.drawing
  const enter = keys[0]?.key ?? 'q'
  const named = keys.map((one) =>
    one.key === enter ? { ...one, does: `${one.does} (Enter)` } : one,
  )
  const view = {
    menu: { prompt, columns: [], rows: [], keys: named, enter },
    intro: ({ columns }: Size) => [...renderVoice({ ink, unicode, columns }, speak), ''],
    choices: {
      message: 'What next?',
      columns: [{ title: '' }],
      choices: keys.map(({ key, does }) => ({
        value: key,
        cells: [`[${key}] ${does}`],
        refusal: null,
      })),
    },
  }
  const asked = await context.ask(stillSubject(createQuestion(state, view, context.drawing)))
  return asked.kind === 'key' ? asked.key : 'q'
}

function explain(end: FlashEnd | null, voice: Voice): void {
  if (end === null || end.kind === 'done') return
  if (end.kind === 'cancelled') voice.warn('Cancelled.')
  else voice.fail(`The flash failed: ${end.reason}`)
  if (end.hint !== null) voice.info(end.hint)
  voice.warn(end.leaves)
}

function renderEnd(end: FlashEnd | null): string {
  if (end?.kind !== 'done') return ''
  const { plan, bytesWritten, seconds, verified } = end
  const readBack = verified ? 'verified' : 'not verified'
  const digest = plan.sha256 === null ? '' : ' The checksum of the image matches.'
  return `Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${readBack}.${digest}`
}
