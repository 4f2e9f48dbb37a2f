/** Who leads: when a server takes the lease over, and what an answer of the database says of the one that it holds. */
import { TIMES, type ClusterTimes } from './times.ts'

/** The lease as one reading found it. */
export interface LeaseReading {
  /** Random for each leader, and anew after each lost connection. */
  readonly term: string
  /** Grows with each renewal and each group. */
  readonly beat: number
  /** The leader's name; empty: it stopped in order, and nobody leads. */
  readonly holder: string
}

/** What is known from the readings so far; null: none, or the database did not answer since. */
export interface LeaseWatch {
  readonly term: string
  readonly beat: number
  /** When it was read last: milliseconds of this process's own clock, which nobody sets. */
  readonly lastAt: number
  /** Milliseconds since it was read first, of which a long gap between two readings counts in part. */
  readonly silentMs: number
}

/** Why a lease may be taken: its leader stopped in order, its session ended, or it renewed it no more. */
type TakeReason = 'handed-over' | 'session-ended' | 'silent'

interface LeaseDecision {
  /** Null: it may not be taken. */
  readonly take: TakeReason | null
  readonly watch: LeaseWatch
}

/**
 * Decides after one reading. `holdsHint`: the advisory lock of the leader is ours, so its session has
 * ended; taking over is safe then, as the fence in each group keeps out whoever believes otherwise.
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

/** The last group of which a server knows that it is stored. */
export interface Position {
  readonly seq: number
  /** The id of that change. */
  readonly change: string
}

/** A group whose answer was lost with the connection, and what the lease says once it is ours again. */
interface Doubt {
  readonly known: Position
  /** The id under which the group was sent; null: none was under way. */
  readonly sent: string | null
  /** The lease's number of the newest change, and that change's id. */
  readonly found: Position
}

/**
 * Decides what became of it. `older`: changes that were acknowledged are not there, `foreign`: another
 * server has changed something; in both cases this server's memory is not to be used any more.
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
