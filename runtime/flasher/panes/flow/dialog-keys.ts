/** What each key does while a dialog has it. Pure. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import { stay, type Dialog, type PaneStep, type Running, type PanesState } from './state.ts'

const close = (state: PanesState): PaneStep => stay({ ...state, dialog: null })

const LEAVE: ReadonlySet<string> = new Set(['escape', 'return', 'n', 'N', 'q', 'ctrl-c'])
const BREAK_OFF: ReadonlySet<string> = new Set(['escape', 'c', 'q', 'ctrl-c'])
/** A second Ctrl-C means yes. */
const CANCEL: ReadonlySet<string> = new Set(['y', 'Y', 'ctrl-c'])

interface Press {
  readonly from: PanesState
  readonly key: string
}

const PRESS: Cases<'kind', Dialog & Press, PaneStep> = {
  help: ({ from }) => close(from),
  checking: ({ from, key }) =>
    BREAK_OFF.has(key)
      ? { state: { ...from, dialog: null }, effects: [{ effect: 'cancel' }] }
      : stay(from),
  confirm: (dialog) => pressInConfirm(dialog),
  flash: (dialog) => pressInFlash(dialog),
  ended: ({ from, key, outcome }) => {
    if (key === 'd' && from.signal.kind === 'failed') return signalDone(from)
    if (!LEAVE.has(key) && key !== ' ') return stay(from)
    const status =
      outcome.kind === 'done' ? ({ tone: 'good', text: 'Flash completed.' } as const) : null
    return stay({ ...from, dialog: null, status })
  },
}

export const pressInDialog = (from: PanesState, dialog: Dialog, key: string): PaneStep =>
  key === 'ctrl-l'
    ? { state: from, effects: [{ effect: 'redraw' }] }
    : decideCase(PRESS, 'kind', { ...dialog, from, key })

const BEGIN: Running = { phase: 'opening the image ...', progress: null, storedBytes: null }

/** One key alone erases a disk, and only after every check has passed. */
function pressInConfirm({
  from,
  key,
  choice,
  checked,
}: Extract<Dialog, { kind: 'confirm' }> & Press): PaneStep {
  if ((key === 'y' || key === 'Y') && checked.reasons.length === 0) {
    return {
      state: {
        ...from,
        dialog: { kind: 'flash', choice, running: BEGIN, cancel: 'no' },
        signal: { kind: 'off' },
      },
      effects: [{ effect: 'flash', choice }],
    }
  }
  return LEAVE.has(key) ? close(from) : stay(from)
}

function pressInFlash({
  from,
  key,
  ...dialog
}: Extract<Dialog, { kind: 'flash' }> & Press): PaneStep {
  const set = (cancel: typeof dialog.cancel): PanesState => ({
    ...from,
    dialog: { ...dialog, cancel },
  })
  if (dialog.cancel === 'no') return stay(BREAK_OFF.has(key) ? set('asked') : from)
  if (dialog.cancel === 'yes') return stay(from)
  return CANCEL.has(key) ? { state: set('yes'), effects: [{ effect: 'cancel' }] } : stay(set('no'))
}

export const signalDone = (state: PanesState): PaneStep =>
  state.setting.server === null || state.setting.mac === null
    ? stay(state)
    : { state: { ...state, signal: { kind: 'sending' } }, effects: [{ effect: 'send-done' }] }
