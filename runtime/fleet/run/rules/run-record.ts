/** A run as it is stored, and as the API returns it. */
import { z } from 'zod'
import { MacSchema, type Mac } from '#kit/net/rules/mac.ts'
import {
  RunSchema,
  type Run,
  RUN_RESULTS,
  type RunPhase,
  type RunResult,
} from '#engine/inventory/rules/run.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import type { SortKey } from '#fleet/machine/rules/selection.ts'
import { renderCsvRow, type Cell } from '#kit/foundation/csv.ts'

// Derives what pages show of a run: its state in one word, its duration, its rate.

const RUN_STATES = ['running', 'stalled', ...RUN_RESULTS] as const
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

// What the list of runs is sorted by: a key for each column, made of what the database holds.

const RUN_COLUMNS = [
  'state',
  'machine',
  'image',
  'disk',
  'duration',
  'rate',
  'verified',
  'armer',
  'started',
] as const
export type RunColumn = (typeof RUN_COLUMNS)[number]

/** From `sort` of an address, with or without `-`; null: no such column. */
export function parseRunColumn(sort: string | undefined): RunColumn | null {
  const name = sort?.replace(/^-/, '')
  return RUN_COLUMNS.find((column) => column === name) ?? null
}

const FiguresSchema = RunSchema.pick({
  started_at: true,
  ended_at: true,
  updated_at: true,
  bytes_written: true,
  steps: true,
  reported: true,
  verified: true,
})

/** Read as a JSON array in this order. */
export const RUN_FIGURES = FiguresSchema.keyof().options

export interface RunSortRow {
  readonly n: number
  readonly mac: Mac
  readonly result: RunResult | null
  /** A text, or `RUN_FIGURES`. */
  readonly value: string | null
}

interface RunSurroundings {
  nameKeyOf(mac: Mac): SortKey
  isStalled(mac: Mac): boolean
}

/** What needs attention comes first. */
const URGENCY = {
  stalled: 0,
  lost: 1,
  failed: 2,
  running: 3,
  cancelled: 4,
  done: 5,
} as const satisfies Record<RunState, number>

type KeyOf = (row: RunSortRow, surroundings: RunSurroundings) => SortKey

const textKey: KeyOf = ({ value }) => (value === null ? null : naturalKey(value))

export const RUN_KEYS: Readonly<Record<RunColumn, KeyOf>> = {
  state: ({ mac, result }, { isStalled }) =>
    URGENCY[result ?? (isStalled(mac) ? 'stalled' : 'running')],
  machine: ({ mac }, { nameKeyOf }) => nameKeyOf(mac),
  image: textKey,
  disk: textKey,
  armer: textKey,
  started: ({ value }) => value,
  duration(row) {
    const run = readFigures(row)
    return run === null || row.result === 'lost' ? null : secondsOf(run)
  },
  rate(row) {
    const run = readFigures(row)
    return run?.reported === true ? averageRateOf(run) || null : null
  },
  verified(row) {
    const isVerified = readFigures(row)?.verified ?? null
    return isVerified === null ? null : Number(isVerified)
  },
}

function readFigures({ value }: RunSortRow) {
  const found = value === null ? null : parseJson(value)
  if (!Array.isArray(found)) return null
  const named = Object.fromEntries(RUN_FIGURES.map((name, at) => [name, found[at]]))
  return FiguresSchema.safeParse(named).data ?? null
}

// The columns of runs as CSV.

const COLUMNS = {
  mac: ({ mac }) => mac,
  run: ({ id }) => id,
  state: stateOf,
  mode: ({ mode }) => mode,
  started_at: ({ started_at }) => started_at,
  ended_at: ({ ended_at }) => ended_at,
  seconds: secondsOf,
  image: ({ image }) => image?.name,
  image_src: ({ image }) => image?.src,
  image_ref: ({ image }) => image?.ref,
  image_sha256: ({ image }) => image?.sha256,
  format: ({ image }) => image?.format,
  disk: ({ disk }) => disk?.path,
  disk_model: ({ disk }) => disk?.model,
  disk_serial: ({ disk }) => disk?.serial,
  disk_bytes: ({ disk }) => disk?.size_bytes,
  bytes_read: (run) => (run.reported ? run.bytes_read : null),
  bytes_written: (run) => (run.reported ? run.bytes_written : null),
  bytes_per_second: averageRateOf,
  verified: ({ verified }) => verified,
  armed_by: ({ armed_by }) => armed_by?.actor,
  armed_from: ({ armed_by }) => armed_by?.ip,
  armed_at: ({ armed_by }) => armed_by?.at,
  reason: ({ reason }) => reason,
  boot: ({ proof }) => proof?.state,
  boot_seen_by: ({ proof }) => proof?.how,
  boot_seconds: ({ proof }) => proof?.seconds,
} as const satisfies Readonly<Record<string, (run: Run) => Cell>>

/** The name is last, so that programs that count columns find the others. */
export const CSV_HEAD = renderCsvRow([...Object.keys(COLUMNS), 'name'])

/** With its line end. `name` null: none. */
export const renderRunRow = (run: Run, name: string | null): string =>
  renderCsvRow([...Object.values(COLUMNS).map((read) => read(run)), name])
