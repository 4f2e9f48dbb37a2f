/** How the search of the machines pages of both lines names and sorts the states of machines. */
import type { Tone } from '#kit/web/ui/elements.ts'

const NEEDS_ATTENTION = 'needs-attention'

/** Sorted by need: failures, then what needs attention. */
export const URGENCY = {
  failed: 0,
  'needs-you': 1,
  running: 2,
  capture: 3,
  armed: 4,
  done: 5,
  ready: 6,
} as const satisfies Record<Tone, number>

export const STATE_VALUES: readonly string[] = [...Object.keys(URGENCY), NEEDS_ATTENTION]

export const listStateNames = (state: Tone): readonly string[] =>
  state === 'needs-you' ? [state, NEEDS_ATTENTION] : [state]
