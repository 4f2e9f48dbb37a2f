/** Who leads: when a server takes the lease over, and what an answer of the database says of the one that it holds. */
import { TIMES, type ClusterTimes } from './times.ts'

export interface LeaseReading {
  /** Random for each leader, and after each lost connection. */
  readonly term: string
  /** Grows with each renewal and each group. */
  readonly beat: number
  /** Empty: it stopped in order, and nobody leads. */
  readonly holder: string
}

/** From the readings so far; null: none, or no answer since. */
export interface LeaseWatch {
  readonly term: string
  readonly beat: number
  /** Of the last reading: milliseconds of a steady clock. */
  readonly lastAt: number
  /** Since the first reading of this beat; of a long gap only a part counts. */
  readonly silentMs: number
}

type TakeReason = 'handed-over' | 'session-ended' | 'silent'

interface LeaseDecision {
  /** Null: it may not be taken. */
  readonly take: TakeReason | null
  readonly watch: LeaseWatch
}

/**
 * `holdsHint`: the leader's advisory lock is ours, so its session has ended. Taking over is safe
 * then: the fence in each group keeps out a leader that believes otherwise.
 */
export function decideTakeover(
  before: LeaseWatch | null,
  { term, beat, holder }: LeaseReading,
  at: number,
  holdsHint: boolean,
  { leaseMs, gapMs }: Pick<ClusterTimes, 'leaseMs' | 'gapMs'> = TIMES,
): LeaseDecision {
  const isSame = before !== null && before.term === term && before.beat === beat
  const silentMs = isSame ? before.silentMs + Math.min(at - before.lastAt, gapMs) : 0
  const watch = { term, beat, lastAt: at, silentMs }
  if (holder === '') return { take: 'handed-over', watch }
  if (holdsHint) return { take: 'session-ended', watch }
  return { take: silentMs >= leaseMs ? 'silent' : null, watch }
}

/** Null: it is not taken. */
export function renderTake({ take, watch }: LeaseDecision): string | null {
  switch (take) {
    case null:
      return null
    case 'handed-over':
      return 'nobody led'
    case 'session-ended':
      return 'the session of the server that led has ended'
    case 'silent':
      return `the server that led has not renewed it for ${(watch.silentMs / 1000).toFixed(1)} s`
  }
}

/** The last group that a server knows to be stored. */
export interface Position {
  readonly seq: number
  readonly change: string
}

/** A group whose answer was lost, and the lease's word once it is ours again. */
interface Doubt {
  readonly known: Position
  /** The id that the group was sent with; null: none was under way. */
  readonly sent: string | null
  readonly found: Position
}

/**
 * `older`: acknowledged changes are missing; `foreign`: another server changed something. Either
 * way this server's memory must not be used any more.
 */
export function decideDoubt({
  known,
  sent,
  found,
}: Doubt): 'stored' | 'not-stored' | 'older' | 'foreign' {
  if (found.seq < known.seq) return 'older'
  if (found.seq === known.seq) return found.change === known.change ? 'not-stored' : 'foreign'
  return found.seq === known.seq + 1 && found.change === sent ? 'stored' : 'foreign'
}
