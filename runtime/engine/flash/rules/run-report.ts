/** Turns the events of a flash into progress posts for the server, and into milestones. */
import type { DeltaState } from '#engine/inventory/rules/run.ts'
import type { FlashEvent, FlashPlan } from './flash.ts'
import { identifyDisk } from '#engine/inventory/rules/disk-pick.ts'
import { renderSize } from '#kit/foundation/size.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { renderSafeUrl } from '#kit/net/rules/image-location.ts'
import type { ProgressPost, RunMode } from '#engine/inventory/rules/run.ts'
import type { SourceShare } from '#engine/image/rules/source-share.ts'
import type { FlashOutcome } from './outcome.ts'

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
  /**
   * The digest of the stored bytes, lower case; checked while they are read. Null: none is known.
   */
  readonly sha256: string | null
  /** The image's identity (`engine/catalog/rules/catalog.ts`); null where it has none. */
  readonly ref: string | null
}

/** What a flash was ordered to do. */
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

/**
 * Makes the report that follows from an event and the report before it; null when there is nothing
 * to report.
 */
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
    trouble && !before.sources?.[at]?.trouble ? [`${name} was left: ${trouble}`] : [],
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
