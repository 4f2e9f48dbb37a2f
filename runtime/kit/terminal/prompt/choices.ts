/** Renders a few choices as text: what Inquirer draws, and the same before it is loaded. Pure. */
import { displayWidth } from '#kit/foundation/printable.ts'
import { clip, layOut, type Column } from '../text/columns.ts'
import type { Ink } from '../text/terminal-style.ts'

interface Choice<Value> {
  readonly value: Value
  /** Printable, one for each column; the first one is shown once it is chosen. */
  readonly cells: readonly string[]
  /** Why it cannot be chosen, printable; null: it can. */
  readonly refusal: string | null
}

export interface Choices<Value> {
  /** `Restore which backup?` */
  readonly message: string
  readonly columns: readonly Column[]
  readonly choices: readonly Choice<Value>[]
  /** Esc leaves without choosing. */
  readonly canLeave?: true
  /** `?` shows help. */
  readonly hasHelp?: true
}

interface ChoicesStyle {
  readonly ink: Ink
  readonly unicode: boolean
}

/** Columns in front of each row. */
const CURSOR = 2
const MIN_REASON = 12

export function layOutChoices(
  { message, columns, choices, canLeave, hasHelp }: Choices<unknown>,
  width: number,
  { ink, unicode }: ChoicesStyle,
) {
  const cells = choices.map((choice) => choice.cells)
  const { head, lines } = layOut(columns, cells, width - CURSOR - 1, unicode)
  const rows = choices.map(({ refusal }, index) => {
    const name = lines[index] ?? ''
    const room = Math.max(MIN_REASON, width - CURSOR - displayWidth(name) - 3)
    const reason = refusal === null ? null : clip(`(${refusal})`, room, { cut: 'end', unicode })
    return { name, reason }
  })
  const known = [
    ...(unicode ? ['↑ ↓ move', 'Enter chooses'] : ['Up, Down: move', 'Enter: choose']),
    ...(canLeave === true ? [unicode ? 'Esc leaves' : 'Esc: leave'] : []),
    ...(hasHelp === true ? [unicode ? '? help' : '?: help'] : []),
  ].join(unicode ? ' · ' : '  ')
  const titles = head === '' ? '' : `\n${' '.repeat(CURSOR)}${ink.faint(head)}`
  return {
    prefix: { idle: ink.here('?'), done: ink.good(unicode ? '✔' : '*') },
    pointer: unicode ? '❯' : '>',
    message: { idle: `${ink.strong(message)}${titles}`, done: ink.strong(message) },
    rows,
    keys: ink.faint(clip(known, width - 1, { cut: 'end', unicode })),
  }
}

/** Line by line: exactly what Inquirer draws once it is loaded. */
export function renderChoices(
  given: Choices<unknown>,
  width: number,
  style: ChoicesStyle,
): readonly string[] {
  const { ink } = style
  const { prefix, pointer, message, rows, keys } = layOutChoices(given, width, style)
  const first = rows.findIndex(({ reason }) => reason === null)
  const lines = rows.map(({ name, reason }, index) => {
    if (reason !== null) return ink.faint(`- ${name} ${reason}`)
    return index === first ? ink.here(`${pointer} ${name}`) : `  ${name}`
  })
  return [...`${prefix.idle} ${message.idle}`.split('\n'), ...lines, ' ', keys]
}

export function renderChosen(given: Choices<unknown>, value: unknown, style: ChoicesStyle): string {
  const { prefix, message } = layOutChoices(given, 80, style)
  const chosen = given.choices.find((choice) => choice.value === value)?.cells[0] ?? ''
  return `${prefix.done} ${message.done} ${style.ink.here(chosen)}`
}
