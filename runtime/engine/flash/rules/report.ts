/** Decides which reports of a flash are posted to the server, and when: each phase, at a limited rate. */
import type { ProgressPost, RunPhase } from '#engine/inventory/rules/run.ts'

/** The time between two posts of one phase. */
export const REPORT_EVERY_MS = 2000
/** A machine cut off from its server goes through a handful of phases; more are not worth keeping. */
const MAX_WAITING = 16

/** What is still to be sent, the oldest first; at most one of each stretch of equal phases. */
export interface ReportQueue {
  readonly waiting: readonly ProgressPost[]
  /** When the last one went out, by any steady clock; null: none did. */
  readonly sentAt: number | null
  /** The phase of the last one that went out. */
  readonly sentPhase: RunPhase | null
}

export const EMPTY_QUEUE: ReportQueue = { waiting: [], sentAt: null, sentPhase: null }

const ENDS: readonly RunPhase[] = ['done', 'failed', 'cancelled']

/** Tells whether a report is the last one of its run. */
export const isEnd = ({ phase }: Pick<ProgressPost, 'phase'>): boolean => ENDS.includes(phase)

/**
 * Adds a report to those that wait. It replaces the last one waiting where both are of the same
 * phase, as it says the same and more; behind the end of a run nothing is added.
 */
export function addReport(queue: ReportQueue, report: ProgressPost): ReportQueue {
  const { waiting } = queue
  const last = waiting.at(-1)
  if (last !== undefined && isEnd(last)) return queue
  const kept = last?.phase === report.phase ? waiting.slice(0, -1) : waiting
  return { ...queue, waiting: [...kept, withFiniteRates(report)].slice(-MAX_WAITING) }
}

/**
 * Returns the milliseconds until the next report is due; 0: now, null: there is none. A new phase
 * never waits.
 */
export function untilDue(queue: ReportQueue, now: number): number | null {
  const [next] = queue.waiting
  if (next === undefined) return null
  const isNewPhase = queue.sentAt === null || next.phase !== queue.sentPhase || isEnd(next)
  return isNewPhase ? 0 : Math.max(0, (queue.sentAt ?? 0) + REPORT_EVERY_MS - now)
}

/**
 * Takes out a report that was sent, or given up, at `now` (milliseconds). What came for its phase
 * meanwhile stays.
 */
export function dropReport(queue: ReportQueue, sent: ProgressPost, now: number): ReportQueue {
  const waiting = queue.waiting.filter((report) => report !== sent)
  return { waiting, sentAt: now, sentPhase: sent.phase }
}

const finite = (value: number | null) =>
  value === null || !Number.isFinite(value) ? null : Math.max(0, value)

/** The rates of the first moments may be infinite or NaN, which JSON cannot hold. */
function withFiniteRates(report: ProgressPost): ProgressPost {
  return { ...report, rate: finite(report.rate), eta_seconds: finite(report.eta_seconds) }
}
