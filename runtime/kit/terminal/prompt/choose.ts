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
import { layOutChoices, type Choices, renderChosen } from './menu.ts'
import { holdEnding } from './keyboard.ts'
import { isEnding, type AskDependencies, type Asked, type FramedChoices } from './question.ts'
import { Writable } from 'node:stream'

/** Beside the rows: question, heads, an empty line, what is wrong, keys, and the shell's line above. */
const OTHER_LINES = 6

/**
 * Rejects with a Fault `cancelled` when the person leaves without choosing, as far as the question
 * says that it can be left, or the signal is aborted.
 */
export async function choose<Value>(
  question: Choices<Value>,
  {
    input,
    output,
    style,
    encode,
  }: {
    readonly input: NodeJS.ReadableStream
    readonly output: NodeJS.WritableStream & Output
    readonly style: TerminalStyle
    readonly encode: Encode
  },
  {
    signal,
    isCleared = false,
  }: {
    /** It is aborted when the program is asked to end. */
    readonly signal: AbortSignal
    /** The answer does not stay on the screen. */
    readonly isCleared?: boolean
  },
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

// Asks for one of a few choices below the screen's content; redraws when the terminal is resized.

interface ChoiceInput {
  readonly keys: NodeJS.ReadableStream
  /** Fires `resize`, and `help` when that is asked for. */
  readonly events: EventTarget
  /** Shows the help until the person has read it. */
  showHelp(until: AbortSignal): Promise<void>
}

/** The first frame of `choices` is on the screen already. */
export async function askChoice(
  choices: FramedChoices,
  { stdout, style, painter }: AskDependencies,
  { keys, events, showHelp }: ChoiceInput,
  signal: AbortSignal,
): Promise<Asked> {
  for (;;) {
    const interrupting = new AbortController()
    const onEvent = ({ type }: Event) => interrupting.abort(type)
    events.addEventListener('resize', onEvent)
    events.addEventListener('help', onEvent)
    const size = painter.size()
    const write = (chunk: Buffer, _encoding: unknown, done: () => void) => {
      stdout.write(chunk.toString())
      done()
    }
    const output = Object.assign(new Writable({ write }), size)
    // What stdout gets is encoded on the way.
    const terminal = { input: keys, output, style, encode: (text: string) => text }
    try {
      const key = await choose(choices, terminal, {
        signal: AbortSignal.any([signal, interrupting.signal]),
        isCleared: true,
      })
      const drawn = { ...style, ink: createInk(style) }
      const lines = [...choices.above(size), renderChosen(choices, key, drawn)]
      painter.paint({ lines, cursor: { row: lines.length - 1, column: 0 } })
      return { kind: 'key', key }
    } catch (thrown) {
      if (!(thrown instanceof Fault)) throw thrown
      if (signal.aborted || !interrupting.signal.aborted) return { kind: 'quit' }
      if (interrupting.signal.reason === 'help') await showHelp(signal)
      if (signal.aborted) return { kind: 'quit' }
      painter.forget()
      painter.paint(choices.frame(painter.size()))
    } finally {
      events.removeEventListener('resize', onEvent)
      events.removeEventListener('help', onEvent)
    }
  }
}
