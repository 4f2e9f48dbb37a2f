/** A menu to choose from by number, arrow, filter or letter: the effect of each input. Pure. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type Column, layOut, clip } from '../text/columns.ts'
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import type { Ink, TerminalStyle } from '../text/terminal-style.ts'
import type { Frame } from './painter.ts'

export interface MenuRow {
  /** Printable, one for each column. */
  readonly cells: readonly string[]
  /** Why it cannot be chosen, in words; null: it can. */
  readonly refusal: string | null
}

export interface MenuKey {
  readonly key: string
  /** The same, spelled out. */
  readonly words: readonly string[]
  /** What the last line says it does; null: it works, but is not advertised. */
  readonly does: string | null
  /** Acts at once, without Enter. */
  readonly isInstant?: true
}

export interface Menu {
  /** What is asked for, before the typed text: `Image`. */
  readonly prompt: string
  readonly columns: readonly Column[]
  readonly rows: readonly MenuRow[]
  readonly keys: readonly MenuKey[]
  /** The key that Enter alone means; null: none. */
  readonly enter: string | null
  /** Any other line is an answer too. */
  readonly takesText?: true
  /** What is typed is not shown: it is a secret. */
  readonly hidesText?: true
  /** Several rows may be ticked: the answer is all of them. */
  readonly takesSeveral?: true
}

export type MenuAnswer =
  | { readonly kind: 'row'; readonly index: number }
  /** The rows in the order of the list; a menu that takes several is answered so. */
  | { readonly kind: 'rows'; readonly indexes: readonly number[] }
  | { readonly kind: 'key'; readonly key: string }
  | { readonly kind: 'text'; readonly text: string }

export interface MenuState {
  readonly line: string
  /** Where in the line the next character goes. */
  readonly at: number
  /** The row that Enter would choose; null: none yet. */
  readonly marked: number | null
  readonly ticked: readonly number[]
  readonly complaint: string | null
  /** The answer that it was about. */
  readonly refused?: Pick<MenuState, 'line' | 'marked' | 'ticked'>
}

export const UNTOUCHED: MenuState = {
  line: '',
  at: 0,
  marked: null,
  ticked: [],
  complaint: null,
}

/** As in the beginning, except for what was ticked. */
export const cleared = (state: MenuState): MenuState => ({ ...UNTOUCHED, ticked: state.ticked })

/** By index; all of them where no filter is typed. */
export function listShown({ rows, takesText }: Menu, line: string): readonly number[] {
  const words = takesText !== true && line.startsWith('/') ? line.slice(1).toLowerCase() : ''
  const wanted = words.split(' ').filter(Boolean)
  return rows.flatMap(({ cells }, index) => {
    const text = cells.join(' ').toLowerCase()
    return wanted.every((word) => text.includes(word)) ? [index] : []
  })
}

const canChoose =
  ({ rows }: Menu) =>
  (index: number) =>
    rows[index]?.refusal === null

/** A number marks its row, a filter the first row that it leaves. */
export function typed(menu: Menu, state: MenuState, line: string, at: number): MenuState {
  if (line === state.line) return { ...state, at }
  return { ...cleared(state), line, at, marked: markOf(menu, line) }
}

function markOf(menu: Menu, line: string): number | null {
  if (menu.takesText === true) return null
  if (line.startsWith('/')) return listShown(menu, line).find(canChoose(menu)) ?? null
  const index = numberOf(line)
  return index !== null && menu.rows[index] !== undefined ? index : null
}

/** From 1 on the screen, from 0 here. */
const numberOf = (line: string) => (/^\s*\d{1,6}\s*$/.test(line) ? Number(line) - 1 : null)

const MOVES = ['up', 'down', 'pageup', 'pagedown'] as const
type Move = (typeof MOVES)[number]

/** Null: the key types. */
export function pressed(
  menu: Menu,
  state: MenuState,
  key: string,
  pageRows: number,
): MenuState | null {
  const move = MOVES.find((name) => name === key)
  if (move !== undefined) return moved(menu, state, move, pageRows)
  if (key === 'escape') return escaped(state)
  return key === 'space' && canTick(menu, state) ? ticked(menu, state) : null
}

/** What was typed goes, unless it is a filter. */
export function moved(menu: Menu, state: MenuState, move: Move, pageRows: number): MenuState {
  const line = state.line.startsWith('/') ? state.line : ''
  const shown = listShown(menu, line)
  const free = shown.filter(canChoose(menu))
  const marked =
    state.marked === null ? startOf(free, move) : stepOf(free, state.marked, move, pageRows)
  return { ...cleared(state), line, at: line.length, marked: marked ?? state.marked }
}

/** Between the words of a filter, between numbers and in what marks no row it is a blank. */
const canTick = ({ takesSeveral }: Menu, { line, marked }: MenuState): boolean =>
  takesSeveral === true && (line === '' || (marked !== null && !line.startsWith('/')))

/** Where none is marked, the first that can be chosen. */
function ticked(menu: Menu, state: MenuState): MenuState {
  const marked = state.marked ?? menu.rows.findIndex(({ refusal }) => refusal === null)
  const answer = decideRow(menu, marked, String(marked + 1))
  if (!answer.ok) return complained(state, answer.refusal)
  const others = state.ticked.filter((index) => index !== marked)
  const isTicked = others.length < state.ticked.length
  return { ...UNTOUCHED, marked, ticked: isTicked ? others : [...others, marked] }
}

/** What was typed goes; where nothing was, what was ticked. */
const escaped = (state: MenuState): MenuState => (state.line === '' ? UNTOUCHED : cleared(state))

const startOf = (free: readonly number[], move: Move) => (move === 'up' ? free.at(-1) : free.at(0))

function stepOf(free: readonly number[], marked: number, move: Move, pageRows: number) {
  const by = { up: 1, down: 1, pageup: pageRows, pagedown: pageRows }[move]
  const isUp = move === 'up' || move === 'pageup'
  const ahead = free.filter((index) => (isUp ? index < marked : index > marked))
  const ordered = isUp ? ahead.toReversed() : ahead
  return ordered[Math.min(by, ordered.length) - 1] ?? (by === 1 ? startOf(free, move) : undefined)
}

/** Null: the typed line is no key that acts without Enter. */
export const findInstant = ({ keys }: Menu, line: string): MenuAnswer | null => {
  const hit = keys.find(({ key, isInstant }) => isInstant === true && key === line.toLowerCase())
  return hit === undefined ? null : { kind: 'key', key: hit.key }
}

/** A refusal says in words what would be right. */
export function decideAnswer(menu: Menu, state: MenuState): Result<MenuAnswer, string> {
  const text = state.line.trim()
  const key = menu.takesText === true && text === '' ? menu.enter : findKey(menu, text)
  if (key !== null) return accept({ kind: 'key', key })
  if (menu.takesText === true) return accept({ kind: 'text', text })
  return menu.takesSeveral === true
    ? decideSeveral(menu, text, state)
    : decideChoice(menu, text, state.marked)
}

/** What is ticked, and what was typed or found besides; else the marked row. */
function decideSeveral(menu: Menu, text: string, state: MenuState): Result<MenuAnswer, string> {
  const added = listTyped(text, state.marked)
  const named = [...state.ticked, ...added]
  const isUnclear = text !== '' && added.length === 0
  if (isUnclear || named.length === 0) return several(decideChoice(menu, text, state.marked))
  const indexes = [...new Set(named)].toSorted((one, other) => one - other)
  for (const index of indexes) {
    const row = decideRow(menu, index, String(index + 1))
    if (!row.ok) return row
  }
  return accept({ kind: 'rows', indexes })
}

function listTyped(text: string, marked: number | null): readonly number[] {
  if (text.startsWith('/')) return marked === null ? [] : [marked]
  const isList = /^\d{1,6}(?:[ ,]+\d{1,6})*$/.test(text)
  return isList ? text.split(/[ ,]+/).map((number) => Number(number) - 1) : []
}

const several = (answer: Result<MenuAnswer, string>): Result<MenuAnswer, string> =>
  answer.ok && answer.value.kind === 'row'
    ? accept({ kind: 'rows', indexes: [answer.value.index] })
    : answer

/** The line is empty again, with the complaint above it. */
export const complained = (state: MenuState, complaint: string): MenuState => ({
  ...cleared(state),
  complaint,
  refused: { line: state.line, marked: state.marked, ticked: state.ticked },
})

/** Anew, after a change of the menu. */
export function renewed(menu: Menu, state: MenuState): MenuState {
  if (state.refused === undefined || state.complaint === null) return state
  const answer = decideAnswer(menu, { ...UNTOUCHED, ...state.refused })
  return { ...state, complaint: answer.ok ? null : answer.refusal }
}

/** A letter, or its word. */
function findKey({ keys }: Menu, text: string): string | null {
  const word = text.toLowerCase()
  return keys.find((one) => one.key === word || one.words.includes(word))?.key ?? null
}

function decideChoice(menu: Menu, text: string, marked: number | null): Result<MenuAnswer, string> {
  const index = text === '' || text.startsWith('/') ? marked : numberOf(text)
  if (index !== null) return decideRow(menu, index, text)
  if (text === '' && menu.enter !== null) return accept({ kind: 'key', key: menu.enter })
  return refuse(
    text.startsWith('/')
      ? `Nothing that can be chosen matches "${text.slice(1)}".`
      : unrecognised(menu, text),
  )
}

function decideRow(menu: Menu, index: number, text: string): Result<MenuAnswer, string> {
  const row = menu.rows[index]
  const noun = menu.prompt.toLowerCase()
  if (row === undefined) {
    return refuse(
      menu.rows.length === 0
        ? `There is no ${noun} to choose yet.`
        : `"${text}" is out of range; valid ${noun} numbers are 1..${menu.rows.length}.`,
    )
  }
  return row.refusal === null
    ? accept({ kind: 'row', index })
    : refuse(`Number ${index + 1} cannot be chosen: ${row.refusal}.`)
}

function unrecognised({ rows, keys }: Menu, text: string): string {
  const known = keys.filter(({ does }) => does !== null).map(({ key }) => key)
  const numbers = rows.length === 0 ? [] : [`a number from 1 to ${rows.length}`]
  const all = [...numbers, ...known]
  const [one, other = ''] = [all.slice(0, -1).join(', '), all.at(-1)]
  const choices = one === '' ? other : `${one} or ${other}`
  return text === '' ? `Type ${choices}.` : `Unrecognised choice "${text}"; type ${choices}.`
}

// Renders a menu as lines: the page of rows around the selected one, the prompt, the keys. Pure.

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

function dyeOf(
  ink: Ink,
  {
    isMarked,
    isTicked,
    isFree,
  }: { readonly isMarked: boolean; readonly isTicked: boolean; readonly isFree: boolean },
) {
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
  if (shown.length <= size) return { indexes, note: shown.length === 0 ? 'nothing matches' : null }
  const [from, to] = [first + 1, first + indexes.length]
  return { indexes, note: `${from} to ${to} of ${shown.length}; PgUp and PgDn turn the page` }
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
  tty ? { one: unicode ? '↑↓' : 'arrows', several: 'space' } : { one: 'number', several: '1 2' }

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
  const list = isList ? [{ text: `[${ways.one}] choose`, rank: 0 }] : []
  const more =
    takesSeveral === true && free > 1 ? [{ text: `[${ways.several}] tick several`, rank: 2 }] : []
  const filter = isList && rows.length > 1 ? [{ text: '[/] filter', rank: 3 }] : []
  // The letters are the same in every list; what Enter alone does as well goes first.
  const letters = keys.flatMap(({ key, does }, at) =>
    does === null
      ? []
      : [{ text: `[${key}] ${does}`, rank: isList ? (key === enter ? 20 : 10 + at) : at / 100 }],
  )
  return [...list, ...more, ...filter, ...letters, { text: '[?] help', rank: 1 }]
}

// Renders a few choices as text: what Inquirer draws, and the same before it is loaded. Pure.

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
