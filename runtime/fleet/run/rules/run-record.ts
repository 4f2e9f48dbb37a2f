/** A run as it is stored and answered, and what each report and each end makes of it. */
import { z } from 'zod'
import {
  createSilentRun,
  type Run,
  RUN_RESULTS,
  type RunDisk,
  type RunImage,
  type RunOrigin,
  type RunPhase,
  type RunProgress,
  type RunResult,
  RunSchema,
} from '#engine/inventory/rules/run.ts'
import type { SortKey } from '#fleet/machine/rules/query.ts'
import { type Cell, renderCsvRow } from '#kit/foundation/csv.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { type Mac, MacSchema } from '#kit/net/rules/mac.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'

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

/** Verifying and syncing come in either order. */
const RANK: Readonly<Record<RunPhase, number>> = {
  started: 0,
  write: 1,
  verify: 2,
  sync: 2,
  uefi: 3,
  done: 4,
  failed: 4,
  cancelled: 4,
}

type Final = Exclude<RunResult, 'lost'>

const FINAL: Readonly<Partial<Record<RunPhase, Final>>> = {
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
}

/**
 * Returns the same object if nothing changes. Posts come late, twice and out of order: counters
 * never go back, a phase is not entered again, and an end stays. A run given up as lost takes the
 * machine's own word for its end.
 */
export function nextRun(run: Run, post: RunProgress, now: string): Run {
  const result = FINAL[post.phase] ?? null
  if (run.result !== null && run.result !== 'lost') {
    return run.result === result ? complete(run, post) : run
  }
  if (result !== null) return conclude(take(run, post, now), result, post.reason ?? null, now)
  return run.result === null ? take(run, post, now) : run
}

/** A run that ended by the machine's word stays as it is. */
export function endRun(run: Run, result: RunResult, reason: string | null, now: string): Run {
  const isOver = run.result !== null && (run.result !== 'lost' || result === 'lost')
  return isOver ? run : conclude(run, result, reason, now)
}

export interface RunEnd {
  readonly result: Exclude<RunResult, 'lost'>
  readonly reason: string | null
  /** When the machine got the plan; null: unknown. */
  readonly plannedAt: string | null
  readonly run?: string | null
  /** It means no run that began then or later; null: any. */
  readonly startedBefore: string | null
}

/**
 * The machine's newest run, if it is heard of or came of that plan; else one made of the plan,
 * under `id`. Null: nothing is known.
 */
export function decideEnded(
  newest: Run | null,
  { result, plannedAt, startedBefore }: Omit<RunEnd, 'reason'>,
  silent: { readonly id: string; readonly origin: RunOrigin },
  now: string,
): Run | null {
  if (newest !== null && isSince(newest, startedBefore)) return null
  if (newest !== null && (isHeardOf(newest) || isOfPlan(newest, plannedAt))) return newest
  if (plannedAt !== null) return createSilentRun(silent.id, silent.origin, plannedAt)
  return newest !== null && isToldAgain(newest, result, now) ? newest : null
}

const isHeardOf = (run: Run): boolean => run.result === null && !run.stalled

const isSince = (run: Run, at: string | null): boolean =>
  at !== null && run.started_at !== null && run.started_at >= at

const isOfPlan = (run: Run, plannedAt: string | null): boolean =>
  plannedAt === null ? run.result === null : run.started_at !== null && run.started_at >= plannedAt

/** Clients report an end by run and without, and retry an absent server for ten minutes. */
const AGAIN_SECONDS = 15 * 60

const isToldAgain = (run: Run, result: RunResult, now: string): boolean =>
  run.result === result &&
  run.ended_at !== null &&
  Temporal.Instant.from(run.ended_at).until(Temporal.Instant.from(now)).total('seconds') <=
    AGAIN_SECONDS

/** Returns the same object if there is nothing to mark. */
export const markStalled = (run: Run, heardAt: number, now: number, patienceMs: number): Run =>
  run.result === null && !run.stalled && now - heardAt > patienceMs
    ? { ...run, stalled: true, rate: null, eta_seconds: null }
    : run

function conclude(run: Run, result: RunResult, reason: string | null, now: string): Run {
  const phase = result === 'lost' ? run.phase : result
  return {
    ...run,
    phase,
    result,
    stalled: false,
    // Lost: only the last contact is known.
    ended_at: result === 'lost' ? run.updated_at : now,
    updated_at: result === 'lost' ? run.updated_at : now,
    rate: null,
    eta_seconds: null,
    reason: reason ?? run.reason,
    steps: result === 'lost' ? run.steps : [...run.steps, { phase, at: now }],
  }
}

function take(run: Run, post: RunProgress, now: string): Run {
  const isFurther = isNextPhase(run, post.phase)
  const before = isFurther && FINAL[post.phase] === undefined ? enter(run, post.phase, now) : run
  const known = { ...before, ...count(before, post), ...describe(before, post) }
  const counted = { ...known, stalled: false, updated_at: now }
  return post.phase === before.phase ? { ...counted, ...pace(before, post) } : counted
}

const isNextPhase = (run: Run, phase: RunPhase) =>
  phase !== run.phase &&
  RANK[phase] >= RANK[run.phase] &&
  !run.steps.some((step) => step.phase === phase)

const enter = (run: Run, phase: RunPhase, now: string): Run => ({
  ...run,
  phase,
  step_bytes: 0,
  step_total: null,
  rate: null,
  eta_seconds: null,
  steps: [...run.steps, { phase, at: now }],
})

/** Bytes read while verifying were not written; later posts may still say the total. */
function count(run: Run, post: RunProgress): Partial<Run> {
  const isRead = post.phase === 'verify'
  const isCounting = post.phase === 'started' || post.phase === 'write' || post.phase === 'done'
  return {
    bytes_read: Math.max(run.bytes_read, post.bytes_read),
    bytes_written: isRead ? run.bytes_written : Math.max(run.bytes_written, post.bytes_written),
    bytes_kept: post.bytes_kept ?? run.bytes_kept,
    total_bytes: isCounting ? (post.total_bytes ?? run.total_bytes) : run.total_bytes,
  }
}

/** Only for the present phase, and no older figures than the known ones. */
function pace(run: Run, post: RunProgress): Partial<Run> {
  if (post.bytes_written < run.step_bytes) return {}
  return {
    step_bytes: post.bytes_written,
    step_total: post.total_bytes ?? run.step_total,
    rate: post.rate,
    eta_seconds: post.eta_seconds,
    bottleneck: post.bottleneck ?? run.bottleneck,
  }
}

const describe = (run: Run, post: RunProgress): Partial<Run> => ({
  mode: post.mode ?? run.mode,
  image: readImage(post.image, run.image) ?? run.image,
  disk: readDisk(post.disk, run.disk) ?? run.disk,
  delta: post.delta ?? run.delta,
  sources: readSources(post) ?? run.sources,
  verified: post.verified ?? run.verified,
  warning: post.warning ?? run.warning,
})

/** The end came before the last figures. */
function complete(run: Run, post: RunProgress): Run {
  const last = { ...count(run, post), ...describe(run, post) }
  const reason = run.reason ?? post.reason ?? null
  const isToldOfSources = last.sources === null || run.sources !== null
  const isSame = FIGURES.every((name) => last[name] === run[name]) && isToldOfSources
  const isKnown = isSame && reason === run.reason
  return isKnown ? run : { ...run, ...last, reason }
}

const FIGURES = [
  'bytes_read',
  'bytes_written',
  'bytes_kept',
  'verified',
  'delta',
  'warning',
] as const

const readSources = ({ sources }: RunProgress): Run['sources'] =>
  sources?.map(({ name, bytes, trouble }) => ({ name, bytes, trouble: trouble ?? null })) ?? null

/** The server may know what the machine leaves out. */
function readImage(image: RunProgress['image'], known: RunImage | null): RunImage | null {
  if (image === null || image === undefined) return null
  const base = known?.name === image.name ? known : NO_IMAGE
  return { ...base, ...dropEmpty(image), name: image.name }
}

function readDisk(disk: RunProgress['disk'], known: RunDisk | null): RunDisk | null {
  if (disk === null || disk === undefined) return null
  const base = known !== null && known.serial === disk.serial ? known : NO_DISK
  return { ...base, ...dropEmpty(disk) }
}

const NO_IMAGE = { src: null, ref: null, sha256: null, format: null, size_bytes: null } as const
const NO_DISK: RunDisk = { path: null, model: null, serial: null, size_bytes: null, tran: null }

type Filled<T> = { readonly [Name in keyof T]?: NonNullable<T[Name]> }

function dropEmpty<T extends object>(fields: T): Filled<T> {
  const given: Filled<T> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined && value !== '')
      Object.assign(given, { [name]: value })
  }
  return given
}
