/** Who leads: when a server takes the lease over, and what an answer of the database says of the one that it holds. */
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

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
 * `holdsLeaderLock`: the leader's advisory lock is ours, so its session has ended. Taking over is safe
 * then: the fence in each group keeps out a leader that believes otherwise.
 */
export function decideTakeover(
  before: LeaseWatch | null,
  { term, beat, holder }: LeaseReading,
  at: number,
  holdsLeaderLock: boolean,
  { leaseMs, gapMs }: Pick<ClusterTimes, 'leaseMs' | 'gapMs'> = TIMES,
): LeaseDecision {
  const isSame = before !== null && before.term === term && before.beat === beat
  const silentMs = isSame ? before.silentMs + Math.min(at - before.lastAt, gapMs) : 0
  const watch = { term, beat, lastAt: at, silentMs }
  if (holder === '') return { take: 'handed-over', watch }
  if (holdsLeaderLock) return { take: 'session-ended', watch }
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

// What a server must read before it may lead: nothing, some rows, everything, or nothing because it is another database.

export interface LogEnds {
  readonly cluster: string
  readonly newest: Position
  /** The oldest kept change. */
  readonly oldest: number
  /** The id of the change with the server's number; null: none. */
  readonly atSeq: string | null
}

type CatchUp = 'nothing' | 'changes' | 'everything' | 'other-database' | 'older-database'

/** `membership` null: it has followed no database yet. */
export function decideCatchUp(membership: ClusterMembership | null, ends: LogEnds): CatchUp {
  if (membership === null) return 'everything'
  if (membership.cluster !== ends.cluster) return 'other-database'
  if (membership.seq < 0) return 'everything'
  if (ends.newest.seq < membership.seq) return 'older-database'
  if (ends.atSeq === null) return membership.seq < ends.oldest ? 'everything' : 'older-database'
  // A database that went back and then on has other changes under the same numbers.
  if (ends.atSeq !== membership.change) return 'older-database'
  return ends.newest.seq === membership.seq ? 'nothing' : 'changes'
}

// How long servers that share a database wait for each other and for it; only tests give shorter times.

export const TIMES = {
  /** A leader silent for so long is taken for gone. */
  leaseMs: 5000,
  /**
   * Readings further apart count as this far: this process or the database may have been stopped,
   * and a leader held up by the same must have its time to renew.
   */
  gapMs: 2000,
  /**
   * So long after asking for the lease successfully, a leader answers from memory. Nobody else
   * leads by then: the database ends a silent session after 3 s at the earliest.
   */
  sureMs: 2500,
  /** A request fails after so long; clients give up after 15 s. */
  holdMs: 12_000,
  /** The database gives up on a group's statement. */
  statementMs: 3000,
  /** For a silent database. */
  answerMs: 6000,
} as const

export type ClusterTimes = Readonly<Record<keyof typeof TIMES, number>>

/** FLASHER_TEST_TIMES as JSON; undefined: not set. Longer times are a Fault. */
export function parseTimes(text: string | undefined): ClusterTimes {
  if (text === undefined) return TIMES
  const given = parseJson(text)
  if (given === null || typeof given !== 'object') throw refuse('it is no JSON object')
  const times: Record<string, number> = { ...TIMES }
  for (const [name, value] of Object.entries<unknown>({ ...given })) {
    const most = times[name]
    if (most === undefined) throw refuse(`there is no ${name}`)
    if (typeof value !== 'number' || !(value >= 100 && value <= most))
      throw refuse(`${name} must be 100 to ${most}`)
    times[name] = value
  }
  return { ...TIMES, ...times }
}

const refuse = (why: string) =>
  new Fault('input-invalid', `FLASHER_TEST_TIMES is for tests alone: ${why}`)
