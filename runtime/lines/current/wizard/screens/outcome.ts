/** The two screens after a flash: it is done, or why it is not. */
import { printable } from '../../../../core/foundation/printable.ts'
import { renderDuration } from '../../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../../core/foundation/size.ts'
import type { MenuKey } from '../../../../terminal/prompt/menu.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { wrap } from '../../../../terminal/text/wrap.ts'
import type { WizardContext } from './wizard-context.ts'
import type { State, Step } from '../flow/flow.ts'
import { createQuestion } from './screen-frame.ts'
import type { FlashOutcome } from '../../../../core/flash/outcome.ts'
import { stillSubject } from './pending-question.ts'

const QUIT: MenuKey = { key: 'q', words: ['quit', 'exit'], does: 'quit' }

export async function showFailure(state: State, context: WizardContext): Promise<Step> {
  const { ink } = context.drawing
  const { end } = state
  const view = {
    menu: {
      prompt: 'Back',
      columns: [],
      rows: [],
      keys: [{ key: 'b', words: ['back', 'disk'], does: 'back to the disks (Enter)' }, QUIT],
      enter: 'b',
    },
    intro: ({ columns }: Size) => {
      if (end === null || end.kind === 'done') return []
      const lines = (text: string) => wrap(printable(text), columns - 1)
      const title = end.kind === 'cancelled' ? 'Cancelled.' : 'The flash failed.'
      return [
        ink.danger(title),
        '',
        ...(end.kind === 'cancelled' ? [] : [...lines(end.reason), '']),
        ...(end.hint === null ? [] : [...lines(end.hint), '']),
        ...lines(end.leaves).map(ink.strong),
      ]
    },
  }
  const asked = await context.ask(stillSubject(createQuestion(state, view, context.drawing)))
  return { step: asked.kind === 'key' && asked.key === 'b' ? 'back' : 'quit' }
}

export async function showDone(state: State, context: WizardContext): Promise<Step> {
  const { ink } = context.drawing
  const canReboot = context.reboot !== null
  const reboot = { key: 'r', words: ['reboot', 'y', 'yes'], does: 'reboot (Enter)' }
  const quit = {
    ...QUIT,
    words: [...QUIT.words, 'n', 'no'],
    does: canReboot ? 'quit' : 'quit (Enter)',
  }
  const view = {
    menu: {
      prompt: canReboot ? 'Reboot' : 'Done',
      columns: [],
      rows: [],
      keys: [
        ...(canReboot ? [reboot] : []),
        { key: 'b', words: ['back', 'disk'], does: 'another disk, same image' },
        quit,
      ],
      enter: canReboot ? 'r' : 'q',
    },
    intro: ({ columns }: Size) => [
      ink.good('Done.'),
      '',
      ...wrap(printable(renderEnd(state.end)), columns - 1),
      ...(state.bootEntry === null ? [] : ['', ...wrap(printable(state.bootEntry), columns - 1)]),
    ],
  }
  const asked = await context.ask(stillSubject(createQuestion(state, view, context.drawing)))
  if (asked.kind !== 'key' || asked.key === 'q') return { step: 'quit' }
  return { step: asked.key === 'r' ? 'reboot' : 'back' }
}

function renderEnd(end: FlashOutcome | null): string {
  if (end?.kind !== 'done') return ''
  const { plan, bytesWritten, seconds, verified } = end
  const readBack = verified ? 'read back and found equal' : 'not read back'
  const digest = plan.sha256 === null ? '' : ' The image has the digest that was promised.'
  return `Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${readBack}.${digest}`
}
