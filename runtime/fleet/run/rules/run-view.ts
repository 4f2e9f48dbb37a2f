/** Derives what pages show of a run: its state in one word, its duration, its rate. */
import { RUN_RESULTS, type Run, type RunPhase } from '#engine/inventory/rules/run.ts'

export const RUN_STATES = ['running', 'stalled', ...RUN_RESULTS] as const
export type RunState = (typeof RUN_STATES)[number]

/** How it ended, else `stalled` or `running`. */
export const stateOf = (run: Run): RunState => run.result ?? (run.stalled ? 'stalled' : 'running')

/** To the end or the last report; null: unknown beginning. */
export const secondsOf = (
  run: Pick<Run, 'started_at' | 'ended_at' | 'updated_at'>,
): number | null =>
  run.started_at === null ? null : secondsBetween(run.started_at, run.ended_at ?? run.updated_at)

/** Bytes per second from the first write to the end, flushing included; null: nothing written. */
export function averageRateOf(
  run: Pick<Run, 'steps' | 'bytes_written' | 'ended_at' | 'updated_at'>,
): number | null {
  const at = run.steps.findIndex(({ phase }) => phase === 'write')
  const began = run.steps[at]
  if (began === undefined) return null
  const left = run.steps.slice(at + 1).find(({ phase }) => !WRITES.has(phase))
  const seconds = secondsBetween(began.at, left?.at ?? run.ended_at ?? run.updated_at)
  return seconds > 0 ? Math.round(run.bytes_written / seconds) : null
}

const WRITES: ReadonlySet<RunPhase> = new Set(['write', 'sync'])

/** 0 to 1 of the present phase; null: unknown end. */
export function shareOf({ phase, step_bytes, step_total }: Run): number | null {
  const counts = phase === 'write' || phase === 'verify'
  if (!counts || step_total === null || step_total === 0) return null
  return Math.min(1, step_bytes / step_total)
}

const secondsBetween = (from: string, to: string): number =>
  Math.max(0, Temporal.Instant.from(to).since(Temporal.Instant.from(from)).total('seconds'))
