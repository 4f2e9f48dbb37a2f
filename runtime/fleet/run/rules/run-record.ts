/** A run as it is stored, and as the API returns it. */
import { z } from 'zod'
import { MacSchema } from '#kit/net/rules/mac-schema.ts'
import { RunSchema, type Run } from '#engine/inventory/rules/run.ts'
import { averageRateOf, RUN_STATES, secondsOf, stateOf } from './run-view.ts'

/** Null: not a run. */
export const parseRun = (stored: unknown): Run | null =>
  StoredRunSchema.safeParse(stored).data ?? null

const StoredRunSchema = RunSchema.extend({ mac: MacSchema })

export const WireRunSchema = RunSchema.omit({ order: true }).extend({
  state: z.enum(RUN_STATES),
  /** From the run's first word to its last. */
  seconds: z.number().nullable(),
  /** Bytes per second while it wrote. */
  average_rate: z.number().nullable(),
})
type WireRun = z.output<typeof WireRunSchema>

export const toWireRun = (
  run: Run,
): Omit<WireRun, 'steps' | 'sources'> & Pick<Run, 'steps' | 'sources'> => ({
  ...omitOrder(run),
  state: stateOf(run),
  seconds: secondsOf(run),
  average_rate: averageRateOf(run),
})

/** Internal: the cycle of its machine that began it. */
function omitOrder(run: Run): Omit<Run, 'order'> {
  const { order: _order, ...shown } = run
  return shown
}
