/** A few choices as text, as they stand on the terminal before the first key is pressed. Pure. */
import { displayWidth } from '../../core/foundation/printable.ts'
import { clip } from '../text/clip.ts'
import { layOut, type Column } from '../text/columns.ts'
import type { Ink } from '../text/ink.ts'

export interface Choice<Value> {
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
}

export interface ChoicesStyle {
  readonly ink: Ink
  readonly unicode: boolean
}

/** In front of each row. */
const CURSOR = 2
const MIN_REASON = 12

interface ChoicesLayout {
  /** The titles of the columns; empty where they have none. */
  readonly head: string
  readonly rows: readonly { readonly name: string; readonly reason: string | null }[]
}

/** `width`: columns of the terminal. */
export function layOutChoices(
  { columns, choices }: Choices<unknown>,
  width: number,
  { unicode }: ChoicesStyle,
): ChoicesLayout {
  const cells = choices.map((choice) => choice.cells)
  const { head, lines } = layOut(columns, cells, width - CURSOR - 1, unicode)
  const rows = choices.map(({ refusal }, index) => {
    const name = lines[index] ?? ''
    const room = Math.max(MIN_REASON, width - CURSOR - displayWidth(name) - 3)
    const reason = refusal === null ? null : clip(`(${refusal})`, room, { cut: 'end', unicode })
    return { name, reason }
  })
  return { head, rows }
}

/** The line above the rows, and the titles of their columns. */
export const renderMessage = (message: string, head: string, { ink }: ChoicesStyle): string =>
  head === ''
    ? ink.strong(message)
    : `${ink.strong(message)}\n${' '.repeat(CURSOR)}${ink.faint(head)}`

export const renderKeys = (
  { canLeave }: Choices<unknown>,
  { ink, unicode }: ChoicesStyle,
): string => {
  const [keys, leave] = unicode
    ? ['↑ ↓ move · Enter chooses', ' · Esc leaves']
    : ['Up, Down: move  Enter: choose', '  Esc: leave']
  return ink.faint(canLeave === true ? keys + leave : keys)
}

export const pointerOf = ({ unicode }: ChoicesStyle) => (unicode ? '❯' : '>')

/** What stays on the screen once one of them is chosen. */
export const renderChosen = (message: string, chosen: string, style: ChoicesStyle): string =>
  `${checkMarkOf(style)} ${style.ink.strong(message)} ${style.ink.here(chosen)}`

export const checkMarkOf = ({ ink, unicode }: ChoicesStyle) => ink.good(unicode ? '✔' : '*')

/** The first frame, line by line: exactly what Inquirer draws once it is loaded. */
export function renderChoices(
  given: Choices<unknown>,
  width: number,
  style: ChoicesStyle,
): readonly string[] {
  const { ink } = style
  const { head, rows } = layOutChoices(given, width, style)
  const first = given.choices.findIndex(({ refusal }) => refusal === null)
  const lines = rows.map(({ name, reason }, index) => {
    if (reason !== null) return ink.faint(`- ${name} ${reason}`)
    return index === first ? ink.here(`${pointerOf(style)} ${name}`) : `  ${name}`
  })
  const message = `${ink.here('?')} ${renderMessage(given.message, head, style)}`
  return [...message.split('\n'), ...lines, ' ', renderKeys(given, style)]
}
