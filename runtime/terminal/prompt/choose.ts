/** One of a list, chosen with arrow keys, where a command was called without saying which one. */
import select from '@inquirer/select'
import { Fault } from '../../core/foundation/fault.ts'
import { displayWidth } from '../../core/foundation/printable.ts'
import { clip } from '../text/clip.ts'
import { layOut, type Column } from '../text/columns.ts'
import { createInk } from '../text/ink.ts'
import { columnsOf, rowsOf, type TerminalStyle, type Output } from '../text/terminal-style.ts'

/** A keyboard, and a screen that the question and the answer go to. */
interface ChoiceTerminal {
  readonly stdin: NodeJS.ReadableStream
  readonly stderr: NodeJS.WritableStream & Output
  readonly look: TerminalStyle
}

interface Choice<Value> {
  readonly value: Value
  /** Printable, one for each column; the first one is said once it is chosen. */
  readonly cells: readonly string[]
  /** Why it cannot be chosen, printable; null: it can. */
  readonly refusal: string | null
}

interface ChoiceQuestion<Value> {
  /** `Restore which backup?` */
  readonly message: string
  readonly columns: readonly Column[]
  readonly choices: readonly Choice<Value>[]
  /** Aborted when the program is asked to end. */
  readonly signal: AbortSignal
}

/** Beside the rows: question, heads, an empty line, what is wrong, keys, and the shell's line above. */
const OTHER_LINES = 6
/** In front of each row. */
const CURSOR = 2
const MIN_REASON = 12

/** Fault `cancelled` where the person wants none of them. */
export async function choose<Value>(
  question: ChoiceQuestion<Value>,
  { stdin, stderr, look }: ChoiceTerminal,
): Promise<Value> {
  const { message, columns, choices, signal } = question
  const width = columnsOf(stderr.columns)
  const rows = choices.map(({ cells }) => cells)
  const { head, lines } = layOut(columns, rows, width - CURSOR, look.unicode)
  const offers = choices.map(({ value, cells, refusal }, index) => {
    const name = lines[index] ?? ''
    const room = Math.max(MIN_REASON, width - CURSOR - displayWidth(name) - 2)
    const reason = refusal === null ? false : ` ${clip(refusal, room, { ...look, cut: 'end' })}`
    return { value, name, short: cells[0] ?? name, disabled: reason }
  })
  const first = choices.find(({ refusal }) => refusal === null)
  using leaving = holdLeaving(stdin)
  try {
    return await select<Value>(
      {
        message,
        choices: offers,
        ...(first === undefined ? {} : { default: first.value }),
        pageSize: Math.max(4, rowsOf(stderr.rows) - OTHER_LINES),
        loop: false,
        theme: createTheme(head, look),
      },
      { input: stdin, output: stderr, signal: AbortSignal.any([signal, leaving.signal]) },
    )
  } catch (thrown) {
    const isEnding = thrown instanceof Error && ENDINGS.has(thrown.name)
    throw isEnding ? new Fault('cancelled', 'cancelled') : thrown
  }
}

/** Inquirer's names for Ctrl-C and for an abort. */
const ENDINGS = new Set(['ExitPromptError', 'AbortPromptError'])

interface Key {
  readonly name?: string
  readonly ctrl?: boolean
}

/** What Inquirer does not take for the end: Esc, Ctrl-D, a terminal that is gone. */
function holdLeaving(stdin: NodeJS.ReadableStream) {
  const leaving = new AbortController()
  const leave = () => leaving.abort()
  const onKey = (_text: string | undefined, { name, ctrl }: Key) => {
    if (name === 'escape' || (name === 'd' && ctrl === true)) leave()
  }
  stdin.on('keypress', onKey).on('end', leave).on('close', leave)
  return {
    signal: leaving.signal,
    [Symbol.dispose]: () => void stdin.off('keypress', onKey).off('end', leave).off('close', leave),
  }
}

/** Inquirer asks stdout for its colours, and the wrong variables for its characters. */
function createTheme(head: string, look: TerminalStyle) {
  const ink = createInk(look)
  const keys = look.unicode
    ? '↑ ↓ move · Enter chooses · Esc leaves'
    : 'Up, Down: move  Enter: choose  Esc: leave'
  return {
    prefix: { idle: ink.here('?'), done: ink.good(look.unicode ? '✔' : '*') },
    icon: { cursor: look.unicode ? '❯' : '>' },
    style: {
      message: (text: string, status: string) =>
        status === 'done'
          ? ink.strong(text)
          : `${ink.strong(text)}\n${' '.repeat(CURSOR)}${ink.faint(head)}`,
      answer: ink.here,
      highlight: ink.here,
      disabled: ink.faint,
      error: ink.danger,
      keysHelpTip: () => ink.faint(keys),
    },
    i18n: { disabledError: 'That one cannot be chosen.' },
  }
}
