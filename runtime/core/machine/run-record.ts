/** A run as it is stored, and as programs get it. */
import { z } from 'zod'
import { parseMac } from './mac.ts'
import { RUN_MODES, RUN_PHASES, RUN_RESULTS, type Run } from './run.ts'
import { averageRateOf, RUN_STATES, secondsOf, stateOf } from './run-view.ts'

const time = z.iso.datetime()
const text = z.string().nullable()
const count = z.int().min(0)

const RunSchema = z.object({
  id: z.string(),
  mac: z.string(),
  mode: z.enum(RUN_MODES),
  reported: z.boolean(),
  phase: z.enum(RUN_PHASES),
  result: z.enum(RUN_RESULTS).nullable(),
  stalled: z.boolean(),
  started_at: time.nullable(),
  updated_at: time,
  ended_at: time.nullable(),
  bytes_read: count,
  bytes_written: count,
  total_bytes: count.nullable(),
  step_bytes: count,
  step_total: count.nullable(),
  rate: z.number().nullable(),
  eta_seconds: z.number().nullable(),
  image: z
    .object({
      name: z.string(),
      src: text,
      ref: text,
      sha256: text,
      format: text,
      size_bytes: count.nullable(),
    })
    .nullable(),
  disk: z
    .object({ path: text, model: text, serial: text, size_bytes: count.nullable(), tran: text })
    .nullable(),
  bottleneck: text,
  verified: z.boolean().nullable(),
  reason: text,
  armed_by: z.object({ actor: z.string(), ip: text, at: time }).nullable(),
  steps: z.array(z.object({ phase: z.enum(RUN_PHASES), at: time })),
  has_log: z.boolean(),
})

/** Null when it cannot be a run. */
export function parseRun(stored: unknown): Run | null {
  const parsed = RunSchema.safeParse(stored)
  if (!parsed.success) return null
  const mac = parseMac(parsed.data.mac)
  return mac.ok ? { ...parsed.data, mac: mac.value } : null
}

/** One run of `GET /runs`. */
export const WireRunSchema = RunSchema.extend({
  state: z.enum(RUN_STATES),
  /** From its first word to its last. */
  seconds: z.number().nullable(),
  /** Bytes per second over the time in which it wrote. */
  average_rate: z.number().nullable(),
})
type WireRun = z.output<typeof WireRunSchema>

export const toWireRun = (run: Run): Omit<WireRun, 'steps'> & Pick<Run, 'steps'> => ({
  ...run,
  state: stateOf(run),
  seconds: secondsOf(run),
  average_rate: averageRateOf(run),
})
