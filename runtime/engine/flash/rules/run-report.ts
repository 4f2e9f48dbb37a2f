/** Turns the events of a flash into progress posts for the server, and into milestones. */
import type { DeltaState, ProgressPost, RunMode, RunPhase } from '#engine/inventory/rules/run.ts'
import type { FlashEvent, FlashPlan } from './flash-plan.ts'
import { identifyDisk, type InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import type { SourceShare } from '#engine/image/rules/frame-map.ts'
import { Fault, renderError, type FaultCode } from '#kit/foundation/fault.ts'

/** An image that a flash was ordered to write, wherever it lies. */
export interface OrderedImage {
  /** The name that people read. */
  readonly name: string
  /** A path, an http(s) URL or an oras reference, as `sources.open` takes it. */
  readonly location: string
  /** Null: the name of the image or of its source decides. */
  readonly format: ImageFormat | null
  /** Bytes as stored; null where nobody said. */
  readonly sizeBytes: number | null
  /** Of the stored bytes, lower case; checked while they are read. Null: none is known. */
  readonly sha256: string | null
  /** The image's identity (`engine/catalog/rules/catalog.ts`); null where it has none. */
  readonly ref: string | null
}

interface ReportedChoice {
  readonly image: OrderedImage
  /** `/dev/sda`, or the serial number of a disk that is not there. */
  readonly disk: string
}

/** What is flashed, where to, and who ordered it: the first post says it, the last one repeats it. */
export interface RunFacts {
  /** The id, which is made anew for each attempt. */
  readonly run: string
  readonly mode: RunMode
  readonly choice: ReportedChoice
  /** Null: its checks refused it. */
  readonly plan: FlashPlan | null
  /** The disk as the inventory has it; null: not in it. */
  readonly disk: InventoryDisk | null
}

/** How it ended, as far as the last report says it. */
export type ReportedEnd =
  | Pick<
      Extract<FlashOutcome, { kind: 'done' }>,
      'kind' | 'bytesWritten' | 'bytesKept' | 'delta' | 'verified' | 'warnings'
    >
  | Pick<Extract<FlashOutcome, { kind: 'failed' | 'cancelled' }>, 'kind' | 'reason'>

/** The counts of a run that has not read anything yet. */
export const NOTHING_DONE = {
  bytes_read: 0,
  bytes_written: 0,
  total_bytes: null,
  rate: null,
  eta_seconds: null,
} as const

/** Makes the first report of a run: nothing is done yet. */
export const startReport = (facts: RunFacts): ProgressPost => ({
  ...NOTHING_DONE,
  run: facts.run,
  phase: 'started',
  ...describe(facts),
})

/** Null: there is nothing to report. */
export function nextReport(before: ProgressPost, event: FlashEvent): ProgressPost | null {
  if (event.event === 'synced') return reportPhase(before, 'sync')
  if (event.event !== 'writing') return null
  const { phase, bytes_read, bytes_written, total_bytes, rate, eta_seconds, bottleneck } = event
  const counts = { bytes_read, bytes_written, total_bytes, rate, eta_seconds }
  return {
    run: before.run,
    phase,
    ...counts,
    ...keptOf(event.bytes_kept),
    ...deltaOf(event.delta),
    ...sourcesOf(event.sources),
    bottleneck: bottleneck ?? null,
  }
}

/** Said only where the disk was compared with the image. */
const keptOf = (bytes: number | null | undefined) =>
  bytes === null || bytes === undefined ? {} : { bytes_kept: bytes }

const deltaOf = (delta: DeltaState | null | undefined) =>
  delta === null || delta === undefined ? {} : { delta }

/** Said only where the image had several. */
const sourcesOf = (shares: ProgressPost['sources'] | readonly SourceShare[]) =>
  shares === null || shares === undefined ? {} : { sources: [...shares] }

/** Lists the sources that were left since the report before, a line for each. */
export const listLeft = (before: ProgressPost, now: ProgressPost): readonly string[] =>
  (now.sources ?? []).flatMap(({ name, trouble }, at) =>
    trouble && !before.sources?.[at]?.trouble ? [`stopped using ${name}: ${trouble}`] : [],
  )

/** Lists how much each source of the image gave; none where it has one alone. */
export const listGiven = ({ sources }: ProgressPost): readonly string[] =>
  (sources ?? []).map(({ name, bytes }) => `${renderSize(bytes)} came from ${name}`)

/** Makes the report of a step in which no bytes are counted. */
export const reportPhase = (before: ProgressPost, phase: 'sync' | 'uefi'): ProgressPost => ({
  ...before,
  phase,
  rate: null,
  eta_seconds: null,
})

/** Makes the last report of a run; it holds all that is known, in case the others were lost. */
export function endReport(facts: RunFacts, before: ProgressPost, end: ReportedEnd): ProgressPost {
  const { run, bytes_read } = before
  const known = { ...describe(facts), ...sourcesOf(before.sources) }
  const counted = { ...NOTHING_DONE, run, bytes_read, ...known }
  if (end.kind === 'done') {
    const { bytesWritten, bytesKept, delta, verified, warnings = [] } = end
    return {
      ...counted,
      phase: 'done',
      bytes_written: bytesWritten,
      ...keptOf(bytesKept),
      ...deltaOf(delta),
      total_bytes: bytesWritten,
      verified,
      ...(warnings.length === 0 ? {} : { warning: warnings.join('; ').slice(0, 500) }),
    }
  }
  const { bytes_written } = before.phase === 'verify' ? NOTHING_DONE : before
  return { ...counted, phase: end.kind, bytes_written, reason: end.reason.slice(0, 500) }
}

const describe = (facts: RunFacts): Partial<ProgressPost> => ({
  mode: facts.mode,
  image: describeImage(facts),
  disk: describeDisk(facts),
})

function describeImage({ choice: { image }, plan }: RunFacts): ProgressPost['image'] {
  const { name, location, ref } = image
  const src = location.includes('://') ? renderSafeUrl(location) : null
  const { format, sizeBytes: size_bytes } = plan?.image ?? image
  const { sha256 } = plan ?? image
  return { name, src, ref, sha256, format, size_bytes }
}

function describeDisk({ choice, plan, disk }: RunFacts): ProgressPost['disk'] {
  const { model, serial, size_bytes, tran } = disk ?? UNSEEN
  // A disk that is not there is known by what it should have been called alone.
  if (!choice.disk.startsWith('/')) return { path: '', serial: choice.disk }
  const seen = { path: choice.disk, model, tran }
  const name = serial ?? (disk === null ? null : identifyDisk(disk))
  if (plan === null) return { ...seen, serial: name, size_bytes: size_bytes ?? null }
  const { identity } = plan.target
  return { ...seen, serial: identity.serial ?? name, size_bytes: identity.sizeBytes }
}

const UNSEEN = { model: null, serial: null, size_bytes: null, tran: null } as const

const QUARTERS = [25, 50, 75, 100] as const

/**
 * Returns `write 50%` when a report passes it, `download 50%` where only the image's stored size
 * (bytes) is known; null when it passes none, or nobody knows how much there is.
 */
export function milestone(
  before: ProgressPost,
  now: ProgressPost,
  storedBytes: number | null,
): string | null {
  if (now.phase !== 'write' && now.phase !== 'verify') return null
  const from = before.phase === now.phase ? reached(before, storedBytes) : 0
  const to = reached(now, storedBytes)
  const passed = QUARTERS.findLast((quarter) => from < quarter && to >= quarter)
  if (passed === undefined) return null
  return `${now.total_bytes === null ? 'download' : now.phase} ${passed}%`
}

/** Returns how far a report is, in percent. */
function reached(report: ProgressPost, storedBytes: number | null): number {
  const { total_bytes, bytes_written, bytes_read } = report
  const [done, total] =
    total_bytes === null ? [bytes_read, storedBytes] : [bytes_written, total_bytes]
  return total === null || total === 0 ? 0 : (done / total) * 100
}

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

/** Milliseconds; 0: now, null: there is none. A new phase never waits. */
export function untilDue(queue: ReportQueue, now: number): number | null {
  const [next] = queue.waiting
  if (next === undefined) return null
  const isNewPhase = queue.sentAt === null || next.phase !== queue.sentPhase || isEnd(next)
  return isNewPhase ? 0 : Math.max(0, (queue.sentAt ?? 0) + REPORT_EVERY_MS - now)
}

/** One that was sent or given up at `now` (milliseconds). What came for its phase since stays. */
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

export type FlashOutcome =
  | {
      readonly kind: 'done'
      readonly plan: FlashPlan
      readonly bytesWritten: number
      readonly seconds: number
      readonly verified: boolean
      /** What a person should know of the image that was written; absent: nothing. */
      readonly warnings?: readonly string[]
      /** What of bytesWritten was on the disk already; null or absent: nothing was compared. */
      readonly bytesKept?: number | null
      /** What became of the wish to write only what differs; null or absent: nobody had it. */
      readonly delta?: DeltaState | null
    }
  | FlashFailure

export interface FlashFailure {
  /** `cancelled`: by a person or by the end of the program. */
  readonly kind: 'failed' | 'cancelled'
  readonly code: FaultCode | 'unexpected'
  readonly reason: string
  readonly hint: string | null
  /** What is on the disk now, in one sentence. */
  readonly leaves: string
  /** What was thrown. */
  readonly cause?: unknown
}

/** What a flash has done to a disk so far. */
export type FlashStage =
  /** No write was begun. */
  | 'checking'
  /** Writes were begun, and none to the first sectors was confirmed. */
  | 'begun'
  /** The first sectors are erased, and with them every table. */
  | 'writing'
  /** The first sectors of the image were begun: they may be there, all or in part. */
  | 'closing'
  /** The whole image is on the disk. */
  | 'written'

/** `target`: as the user named it. */
const LEAVES: Readonly<Record<FlashStage, (target: string) => string>> = {
  checking: () => 'Nothing was written.',
  begun: (target) => `No write to ${target} was confirmed; nothing of the image is on it.`,
  writing: (target) => `${target} has no partition table and cannot boot. Flash it again.`,
  closing: (target) =>
    `${target} may boot with an incomplete image. Do not boot from it. Flash it again.`,
  written: (target) => `The image is on ${target}; only the step after the write failed.`,
}

interface DiskWrite {
  /** It reaches the first sector. */
  readonly isFirst: boolean
  /** It erases. */
  readonly isBlank: boolean
  /** The disk confirmed it; else it is about to be written. */
  readonly isConfirmed: boolean
}

/** The stage after a write; one that fails changes nothing more. */
export function nextStage(
  stage: FlashStage,
  { isFirst, isBlank, isConfirmed }: DiskWrite,
): FlashStage {
  if (isFirst && isBlank && isConfirmed) return 'writing'
  if (isFirst && !isBlank) return 'closing'
  return stage === 'checking' ? 'begun' : stage
}

interface FailurePoint {
  readonly target: string
  readonly stage: FlashStage
  /** Whether the flash was asked to end: what it then failed with is a cancel. */
  readonly isAborted: boolean
}

/**
 * Describes what was thrown at this point of a flash, with what is on the disk now. What an abort
 * broke off is `cancelled`, unless it is a Fault of its own.
 */
export function describeFailure(
  thrown: unknown,
  { target, stage, isAborted }: FailurePoint,
): FlashFailure {
  const leaves = LEAVES[stage](target)
  const cause =
    isAborted && !(thrown instanceof Fault)
      ? new Fault('cancelled', 'cancelled', { cause: thrown })
      : thrown
  const { code, hint = null } =
    cause instanceof Fault ? cause : ({ code: 'unexpected', hint: null } as const)
  const kind = code === 'cancelled' ? 'cancelled' : 'failed'
  return { kind, code, reason: renderError(cause), hint, leaves, cause }
}
