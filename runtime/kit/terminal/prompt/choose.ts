/** Asks for one of a few choices with arrow keys: Inquirer's select in this terminal's style. */
import select from '@inquirer/select'
import { Fault } from '#kit/foundation/fault.ts'
import {
  type Encode,
  columnsOf,
  rowsOf,
  type TerminalStyle,
  type Output,
  createInk,
} from '../text/terminal-style.ts'
import { layOutChoices, type Choices } from './choices.ts'
import { holdEnding } from './keyboard.ts'
import { isEnding } from './question.ts'

interface ChoiceTerminal {
  readonly input: NodeJS.ReadableStream
  readonly output: NodeJS.WritableStream & Output
  readonly style: TerminalStyle
  readonly encode: Encode
}

interface ChoiceOptions {
  /** It is aborted when the program is asked to end. */
  readonly signal: AbortSignal
  /** The answer does not stay on the screen. */
  readonly isCleared?: boolean
}

/** Beside the rows: question, heads, an empty line, what is wrong, keys, and the shell's line above. */
const OTHER_LINES = 6

/**
 * Rejects with a Fault `cancelled` when the person leaves without choosing, as far as the question
 * says that it can be left, or the signal is aborted.
 */
export async function choose<Value>(
  question: Choices<Value>,
  { input, output, style, encode }: ChoiceTerminal,
  { signal, isCleared = false }: ChoiceOptions,
): Promise<Value> {
  const ink = createInk(style)
  const layout = layOutChoices(question, columnsOf(output.columns), { ...style, ink })
  const { prefix, pointer, message, rows, keys } = layout
  const choices = question.choices.map(({ value, cells }, index) => {
    const { name = '', reason = null } = rows[index] ?? {}
    const short = encode(cells[0] ?? name)
    return { value, name: encode(name), short, disabled: reason === null ? false : encode(reason) }
  })
  const first = question.choices.find(({ refusal }) => refusal === null)
  // Inquirer asks stdout for its colours, and the wrong variables for its characters.
  const theme = {
    prefix,
    icon: { cursor: pointer },
    style: {
      message: (_text: string, status: string) => (status === 'done' ? message.done : message.idle),
      answer: ink.here,
      highlight: ink.here,
      disabled: ink.faint,
      error: ink.danger,
      keysHelpTip: () => keys,
    },
    i18n: { disabledError: 'That one cannot be chosen.' },
  }
  using leaving = question.canLeave === true ? holdEnding({ stdin: input, atEscape: true }) : null
  const until = leaving === null ? signal : AbortSignal.any([signal, leaving.signal])
  try {
    return await select<Value>(
      {
        message: question.message,
        choices,
        ...(first === undefined ? {} : { default: first.value }),
        pageSize: Math.max(4, rowsOf(output.rows) - OTHER_LINES),
        loop: false,
        theme,
      },
      { input, output, signal: until, clearPromptOnDone: isCleared },
    )
  } catch (thrown) {
    throw isEnding(thrown) ? new Fault('cancelled', 'cancelled') : thrown
  }
}
