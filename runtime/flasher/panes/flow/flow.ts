/** The terminal UI as a state machine: what follows from each key and from each thing found out. Pure. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import type { FlashEvent } from '#engine/flash/rules/flash.ts'
import { nextProgress } from '#flasher/text/rules/progress-text.ts'
import { pressInDialog, signalDone } from './dialog-keys.ts'
import { takeDisks, takeImages } from './rows.ts'
import { pressInPanes } from './pane-keys.ts'
import { stay, type Input, type PaneStep, type PanesState } from './state.ts'

type PanesInput = Input & { readonly from: PanesState }

const NEXT: Cases<'input', PanesInput, PaneStep> = {
  key: ({ from, key, pageRows }) =>
    from.dialog === null
      ? pressInPanes(from, key, pageRows)
      : pressInDialog(from, from.dialog, key),
  images: ({ from, listing }) => stay(takeImages(from, listing)),
  disks: ({ from, listing }) => stay(takeDisks(from, listing)),
  checked: ({ from, checked }) =>
    stay(
      from.dialog?.kind === 'checking'
        ? { ...from, dialog: { kind: 'confirm', choice: from.dialog.choice, checked } }
        : from,
    ),
  event: ({ from, event, storedBytes }) => stay(takeEvent(from, event, storedBytes)),
  ended: ({ from, outcome }) => {
    if (from.dialog?.kind !== 'flash') return stay(from)
    const state: PanesState = {
      ...from,
      dialog: { kind: 'ended', choice: from.dialog.choice, outcome },
      status: null,
    }
    const next = outcome.kind === 'done' ? signalDone(state) : stay(state)
    return { ...next, effects: [...next.effects, { effect: 'list-disks' }] }
  },
  signalled: ({ from, refusal }) => {
    const isSent = refusal === null
    const state: PanesState = {
      ...from,
      signal: isSent ? { kind: 'sent' } : { kind: 'failed', reason: refusal },
      isLeaving: from.isLeaving && isSent,
    }
    return { state, effects: state.isLeaving ? [{ effect: 'quit' }] : [] }
  },
}

export const next = (from: PanesState, input: Input): PaneStep =>
  decideCase(NEXT, 'input', { ...input, from })

function takeEvent(from: PanesState, event: FlashEvent, storedBytes: number | null): PanesState {
  if (from.dialog?.kind !== 'flash') return from
  const running = { ...nextProgress(event, from.dialog.running), storedBytes }
  return { ...from, dialog: { ...from.dialog, running } }
}
