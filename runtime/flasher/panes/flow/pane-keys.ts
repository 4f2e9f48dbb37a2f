/** What each key does while the panes have it. Pure. */
import {
  decideChoice,
  findMarked,
  refuseMarkedImage,
  ensureMark,
  moveMark,
  type MarkMove,
} from './rows.ts'
import { signalDone } from './dialog-keys.ts'
import { REFRESHING, stay, type PaneStep, type PaneName, type PanesState } from './state.ts'

const MOVES = [
  'up',
  'down',
  'pageup',
  'pagedown',
  'home',
  'end',
] as const satisfies readonly MarkMove[]

/** The next key removes the message of the one before. */
export function pressInPanes(from: PanesState, key: string, pageRows: number): PaneStep {
  const state: PanesState = { ...from, status: null }
  if (state.isTyping) return type(state, key, pageRows)
  const move = MOVES.find((name) => name === key)
  if (move !== undefined) return stay(moveMark(state, move, pageRows))
  const act = KEYS.get(key.toLowerCase())
  return act === undefined ? stay(from) : act(state)
}

const otherPane = ({ focus }: PanesState): PaneName => (focus === 'images' ? 'disks' : 'images')

/** Marks a row only once a person is in the pane, so that no disk is marked by nobody. */
const goTo = (state: PanesState, focus: PaneName): PaneStep =>
  stay(ensureMark({ ...state, focus }, focus))

const quit = (state: PanesState): PaneStep =>
  state.signal.kind === 'sending' && !state.isLeaving
    ? stay({ ...state, isLeaving: true })
    : { state, effects: [{ effect: 'quit' }] }

const refresh = (state: PanesState): PaneStep => ({
  state: { ...state, status: REFRESHING },
  effects: [{ effect: 'list-images' }, { effect: 'list-disks' }],
})

const help = (state: PanesState): PaneStep => stay({ ...state, dialog: { kind: 'help' } })

function flash(state: PanesState): PaneStep {
  const choice = decideChoice(state)
  const refusal = typeof choice === 'string' ? choice : null
  const text = state.setting.isRoot ? refusal : ROOT
  if (typeof choice === 'string' || text !== null) {
    return stay({ ...state, status: { tone: 'danger', text: text ?? '' } })
  }
  return {
    state: { ...state, dialog: { kind: 'checking', choice } },
    effects: [{ effect: 'check', choice }],
  }
}

export const ROOT = 'Writing to a disk needs root: start flasher-tui again with sudo.'

function enter(state: PanesState): PaneStep {
  if (state.focus === 'disks') return flash(state)
  const refusal = refuseMarkedImage(state)
  return refusal === null
    ? goTo(state, 'disks')
    : stay({ ...state, status: { tone: 'danger', text: refusal } })
}

const KEYS: ReadonlyMap<string, (state: PanesState) => PaneStep> = new Map([
  ['tab', (state) => goTo(state, otherPane(state))],
  ['left', (state) => goTo(state, 'images')],
  ['right', (state) => goTo(state, 'disks')],
  ['return', enter],
  ['f', flash],
  ['r', refresh],
  ['f5', refresh],
  ['/', (state) => stay({ ...state, isTyping: true })],
  ['escape', (state) => stay(filterBy(state, ''))],
  ['d', (state) => (state.signal.kind === 'failed' ? signalDone(state) : stay(state))],
  ['?', help],
  ['f1', help],
  ['q', quit],
  ['f10', quit],
  ['ctrl-c', quit],
  ['ctrl-d', quit],
  ['ctrl-l', (state) => ({ state, effects: [{ effect: 'redraw' }] })],
])

const MAX_FILTER = 60

function type(state: PanesState, key: string, pageRows: number): PaneStep {
  const filter = state.filter[state.focus]
  const move = MOVES.find((name) => name === key)
  if (move !== undefined) return stay(moveMark(state, move, pageRows))
  if (key === 'ctrl-c') return quit(state)
  if (key === 'escape') return stay(filterBy({ ...state, isTyping: false }, ''))
  if (key === 'return') return stay({ ...state, isTyping: false })
  if (key === 'tab') return goTo({ ...state, isTyping: false }, otherPane(state))
  if (key === 'backspace') return stay(filterBy(state, [...filter].slice(0, -1).join('')))
  const isText = [...key].length === 1 && filter.length < MAX_FILTER
  return stay(isText ? filterBy(state, filter + key) : state)
}

/** A mark that the filter hides goes to the first row that is left. */
function filterBy(state: PanesState, text: string): PanesState {
  const { focus, filter } = state
  const next = { ...state, filter: { ...filter, [focus]: text } }
  return findMarked(next, focus) === null ? ensureMark(next, focus) : next
}
