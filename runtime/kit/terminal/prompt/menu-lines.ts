/** Renders a menu as lines: the page of rows around the selected one, the prompt, the keys. Pure. */
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import { fill } from '#kit/texts/text.ts'
import { PROMPT_TEXTS } from './texts.ts'
import { clip } from '../text/clip.ts'
import { layOut } from '../text/columns.ts'
import type { Ink } from '../text/ink.ts'
import type { TerminalStyle } from '../text/terminal-style.ts'
import { listShown, type Menu, type MenuState } from './menu.ts'
import type { Frame } from './painter.ts'

const { footer: FOOTER } = PROMPT_TEXTS

interface MenuRoom extends Pick<TerminalStyle, 'unicode' | 'tty'> {
  readonly columns: number
  /** The rows of the screen that are for the list with its titles. */
  readonly rows: number
  readonly ink: Ink
}

const AT_END = { cut: 'end', unicode: false } as const

/** The header of the columns and the line below the page. */
const AROUND = 2

/** `rows`: for the list and its titles. */
export const pageRowsOf = (rows: number): number => Math.max(1, rows - AROUND)

/** Below `above`: the list, the prompt with the cursor in it, and the keys. */
export function renderMenu(
  above: readonly string[],
  menu: Menu,
  state: MenuState,
  room: MenuRoom,
): Frame {
  const lines = [...above, ...renderRows(menu, state, room), '']
  const prompt = renderPrompt(menu, state, room)
  // What was wrong stands above the prompt.
  const cursor = { row: lines.length + 1, column: prompt.column }
  return { lines: [...lines, ...prompt.lines], cursor }
}

/** One page of the list; nothing where there are no rows. */
function renderRows(menu: Menu, state: MenuState, room: MenuRoom): readonly string[] {
  if (menu.rows.length === 0) return []
  const { ink } = room
  const shown = listShown(menu, state.line)
  const page = pageOf(shown, state.marked, pageRowsOf(room.rows))
  const digits = String(menu.rows.length).length
  const lead = digits + 5
  const layout = layOut(
    menu.columns,
    menu.rows.map(({ cells }) => cells),
    room.columns - 1 - lead,
    room.unicode,
  )
  const rows = page.indexes.map((index) => {
    const isMarked = index === state.marked
    const isTicked = state.ticked.includes(index)
    const isFree = menu.rows[index]?.refusal === null
    const sign = isMarked ? '>' : isFree ? ' ' : '-'
    const tick = isTicked ? (room.unicode ? '✔' : '*') : ' '
    const line = `${tick}${sign} ${String(index + 1).padStart(digits)}  ${layout.lines[index] ?? ''}`
    return dyeOf(ink, { isMarked, isTicked, isFree })(line)
  })
  return [
    ink.faint(`   ${'#'.padStart(digits)}  ${layout.head}`),
    ...rows,
    ...(page.note === null ? [] : [ink.faint(clip(`   ${page.note}`, room.columns - 1, AT_END))]),
  ]
}

interface RowState {
  readonly isMarked: boolean
  readonly isTicked: boolean
  readonly isFree: boolean
}

function dyeOf(ink: Ink, { isMarked, isTicked, isFree }: RowState) {
  if (!isFree) return ink.faint
  if (isMarked) return ink.here
  return isTicked ? ink.strong : (line: string) => line
}

interface Page {
  readonly indexes: readonly number[]
  readonly note: string | null
}

/** Whole pages instead of a moving window: most moves then change two lines alone. */
function pageOf(shown: readonly number[], marked: number | null, size: number): Page {
  const at = Math.max(0, marked === null ? 0 : shown.indexOf(marked))
  const first = Math.floor(at / size) * size
  const indexes = shown.slice(first, first + size)
  if (shown.length <= size)
    return { indexes, note: shown.length === 0 ? PROMPT_TEXTS.nothingMatches : null }
  const [from, to] = [first + 1, first + indexes.length]
  return { indexes, note: fill(PROMPT_TEXTS.page, { from, to, count: shown.length }) }
}

/** What was wrong, the typed text, and the keys that there are; where in the typed text the cursor is. */
function renderPrompt(
  menu: Menu,
  { line, at, complaint }: MenuState,
  { columns, unicode, tty, ink }: MenuRoom,
) {
  const lead = `> ${menu.prompt}: `
  const room = Math.max(4, columns - 1 - lead.length)
  // The end is what is being typed.
  const from = Math.max(0, at - room)
  const shown = menu.hidesText === true ? '*'.repeat(line.length) : printable(line)
  const text = shown.slice(from, from + room)
  const trouble = complaint === null ? '' : printable(complaint)
  const fit = (whole: string) => clip(whole, columns - 1, { cut: 'end', unicode })
  const keys = keysInWords(menu, columns - 1, waysOf(tty, unicode))
  return {
    lines: [ink.danger(fit(trouble)), `${ink.strong(lead)}${text}`, ink.faint(fit(keys))],
    column: Math.min(columns - 1, lead.length + at - from),
  }
}

/** How rows are chosen: one, and several. */
interface Ways {
  readonly one: string
  readonly several: string
}

const waysOf = (tty: boolean, unicode: boolean): Ways =>
  tty
    ? { one: unicode ? '↑↓' : FOOTER.arrows, several: FOOTER.space }
    : { one: FOOTER.number, several: FOOTER.numbers }

/** Names as many keys as there is room for; the rest is in the help. */
function keysInWords(menu: Menu, width: number, ways: Ways): string {
  const keys = listKeys(menu, ways)
  const ordered = keys.toSorted((one, two) => one.rank - two.rank)
  const fitting = ordered.findIndex((_key, at) => {
    const shown = ordered.slice(0, at + 1)
    return shown.reduce((sum, { text }) => sum + displayWidth(text) + 2, -2) > width
  })
  const kept = new Set(ordered.slice(0, fitting === -1 ? ordered.length : Math.max(1, fitting)))
  return keys
    .filter((key) => kept.has(key))
    .map(({ text }) => text)
    .join('  ')
}

interface ShownKey {
  readonly text: string
  /** The lower, the longer it is shown. */
  readonly rank: number
}

function listKeys(menu: Menu, ways: Ways): readonly ShownKey[] {
  const { rows, keys, takesText, takesSeveral, enter } = menu
  const free = rows.filter(({ refusal }) => refusal === null).length
  const isList = takesText !== true && free > 0
  const list = isList ? [{ text: fill(FOOTER.choose, { keys: ways.one }), rank: 0 }] : []
  const more =
    takesSeveral === true && free > 1
      ? [{ text: fill(FOOTER.several, { keys: ways.several }), rank: 2 }]
      : []
  const filter = isList && rows.length > 1 ? [{ text: FOOTER.filter, rank: 3 }] : []
  // The letters are the same in every list; what Enter alone does as well goes first.
  const letters = keys.flatMap(({ key, does }, at) =>
    does === null
      ? []
      : [{ text: `[${key}] ${does}`, rank: isList ? (key === enter ? 20 : 10 + at) : at / 100 }],
  )
  return [...list, ...more, ...filter, ...letters, { text: FOOTER.help, rank: 1 }]
}
