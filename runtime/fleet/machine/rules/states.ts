/** The states of machines: a row for each says how lists, searches and questions of both lines name and sort it. */

/** Sorted by need. */
const ROWS = [
  { state: 'failed', word: 'failed', filter: 'Failed', loss: 6 },
  { state: 'needs-you', word: 'needs attention', also: 'needs-attention', loss: 7 },
  { state: 'paused', word: 'paused', filter: 'Paused', isRare: true, loss: 4 },
  { state: 'running', word: 'running', filter: 'Running', loss: 0 },
  { state: 'capture', word: 'capture ordered', filter: 'Capture ordered', isRare: true, loss: 5 },
  {
    state: 'once',
    word: 'boot once',
    also: 'boot-once',
    filter: 'Boot once',
    isRare: true,
    loss: 8,
  },
  { state: 'armed', word: 'armed', filter: 'Armed', loss: 3 },
  { state: 'done', word: 'done', filter: 'Done', loss: 1 },
  { state: 'ready', word: 'ready', loss: 2 },
] as const

export type MachineState = (typeof ROWS)[number]['state']

interface StateRow {
  readonly state: MachineState
  readonly word: string
  /** Its other name in searches. */
  readonly also?: string
  /** The title of its filter above the list; absent: it has none of its own. */
  readonly filter?: string
  /** The filter is hidden while it finds nothing. */
  readonly isRare?: boolean
  /** Its place in a question: where people would least expect that a disk is erased comes first. */
  readonly loss: number
}

export const MACHINE_STATES: readonly StateRow[] = ROWS

export const urgencyOf = (state: MachineState): number =>
  MACHINE_STATES.findIndex((row) => row.state === state)

/** `word`: its own, where that of the state says too little. */
export const wordOf = ({ state, word }: { readonly state: MachineState; readonly word?: string }) =>
  word ?? MACHINE_STATES[urgencyOf(state)]?.word ?? state

/** In searches; of all states without one. */
export const listStateNames = (state?: MachineState): readonly string[] =>
  MACHINE_STATES.flatMap((row) =>
    state === undefined || row.state === state ? [row.state, row.also ?? []].flat() : [],
  )
