/** A menu to choose from by number, arrow, filter or letter: the effect of each input. Pure. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill } from '#kit/texts/text.ts'
import { PROMPT_TEXTS } from './texts.ts'
import type { Column } from '../text/columns.ts'

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
  readonly refused?: Answered
}

type Answered = Pick<MenuState, 'line' | 'marked' | 'ticked'>

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
      ? fill(PROMPT_TEXTS.noMatch, { text: text.slice(1) })
      : unrecognised(menu, text),
  )
}

function decideRow(menu: Menu, index: number, text: string): Result<MenuAnswer, string> {
  const row = menu.rows[index]
  const noun = menu.prompt.toLowerCase()
  if (row === undefined) {
    return refuse(
      menu.rows.length === 0
        ? fill(PROMPT_TEXTS.nothingYet, { noun })
        : fill(PROMPT_TEXTS.outOfRange, { text, noun, count: menu.rows.length }),
    )
  }
  return row.refusal === null
    ? accept({ kind: 'row', index })
    : refuse(fill(PROMPT_TEXTS.refused, { number: index + 1, reason: row.refusal }))
}

function unrecognised({ rows, keys }: Menu, text: string): string {
  const known = keys.filter(({ does }) => does !== null).map(({ key }) => key)
  const numbers = rows.length === 0 ? [] : [fill(PROMPT_TEXTS.numbers, { count: rows.length })]
  const all = [...numbers, ...known]
  const [one, other = ''] = [all.slice(0, -1).join(', '), all.at(-1)]
  const choices = one === '' ? other : fill(PROMPT_TEXTS.lists.either, { one, other })
  return fill(text === '' ? PROMPT_TEXTS.type : PROMPT_TEXTS.unrecognised, { text, choices })
}
