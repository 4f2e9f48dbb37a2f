/** What the list of runs is sorted by: a key for each column, made of what the database holds. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import { RunSchema, type RunResult } from '#engine/inventory/rules/run.ts'
import { averageRateOf, secondsOf, type RunState } from './run-view.ts'
import type { SortKey } from '#fleet/machine/rules/selection.ts'

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
