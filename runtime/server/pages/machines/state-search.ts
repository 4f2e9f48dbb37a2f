/** How the search of the machines pages of both lines names and sorts the states of machines. */
import type { Tone } from '../../../kit/web/ui/elements.ts'

/** What pages call `needs-you`. */
const NEEDS_ATTENTION = 'needs-attention'

/** The position of each state in a list that is sorted by need: what failed comes first, then what needs attention. */
export const URGENCY = {
  failed: 0,
  'needs-you': 1,
  running: 2,
  capture: 3,
  armed: 4,
  done: 5,
  ready: 6,
} as const satisfies Record<Tone, number>

/** What `state:` finds, in any of its spellings. */
export const STATE_VALUES: readonly string[] = [...Object.keys(URGENCY), NEEDS_ATTENTION]

/** Lists the names by which a search finds a state. */
export const listStateNames = (state: Tone): readonly string[] =>
  state === 'needs-you' ? [state, NEEDS_ATTENTION] : [state]
