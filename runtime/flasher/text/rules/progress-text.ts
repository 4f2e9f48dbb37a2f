/** Says how far a flash is, and how it ended, in the words that every screen for people uses. Pure. */
import { renderDuration, renderExactSize, renderPartOf, renderSize } from '#kit/foundation/size.ts'
import { GROWING, type FlashEvent, type WriteProgress } from '#engine/flash/rules/flash.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'

const DELTA = {
  compared: 'writing what differs',
  'mostly-different': 'writing the whole image, as the disk holds something else',
  'no-index': 'writing the whole image, as it has no index',
  untrusted: 'writing the whole image, as the digest of its index is not known',
} as const

const WHOLE = {
  'mostly-different': 'All of it was written: the disk held something else.',
  'no-index': 'All of it was written: the image has no index to compare the disk with.',
  untrusted: "All of it was written: the digest of the image's index is not known.",
} as const

interface ShownProgress {
  readonly phase: string
  readonly progress: WriteProgress | null
}

const PHASES: { readonly [Name in FlashEvent['event']]?: string } = {
  started: 'preparing the disk ...',
  provisioning: 'writing the first-boot configuration ...',
  synced: 'the kernel reads the new partitions ...',
  partprobed: 'done',
}

export function nextProgress(event: FlashEvent, { phase, progress }: ShownProgress): ShownProgress {
  if (event.event !== 'writing') return { phase: PHASES[event.event] ?? phase, progress }
  const isNew = event.phase !== progress?.phase
  return { phase: isNew ? renderPhase(event, progress) : phase, progress: event }
}

/** `before`: where the phase before it ended. */
function renderPhase(
  { phase, note, total_bytes, delta }: WriteProgress,
  before: WriteProgress | null,
): string {
  if (note === GROWING) return 'growing the last partition and its file system ...'
  if (phase === 'write') return delta === undefined ? 'writing' : DELTA[delta]
  const isLess = total_bytes !== null && total_bytes < (before?.bytes_written ?? 0)
  return isLess
    ? 'reading back what was written, samples of its zeros'
    : 'reading back what was written'
}

export function renderWaiting(phase: string, progress: WriteProgress | null): string {
  const bottleneck = progress?.bottleneck ?? null
  if (bottleneck === null) return phase
  return `${phase}, waiting for the ${bottleneck}`
}

/** `1.2 of 3.4 GB of the image read, 12 s so far`. `storedBytes` null: unknown. */
export function renderReadSoFar(
  progress: WriteProgress | null,
  storedBytes: number | null,
  time: string,
): string {
  if (progress === null || progress.phase !== 'write') return `${time} so far`
  const { bytes_read: read } = progress
  const amount = storedBytes === null ? renderSize(read) : renderPartOf(read, storedBytes)
  return `${amount} of the image read, ${time} so far`
}

/** Null: only what differs was written, or all was wanted. */
export const renderWhole = ({
  delta = null,
}: Pick<Extract<FlashOutcome, { kind: 'done' }>, 'delta'>): string | null =>
  delta === null || delta === 'compared' ? null : WHOLE[delta]

/** Empty where the flash did not succeed. */
export function renderSuccess(end: FlashOutcome | null): string {
  if (end?.kind !== 'done') return ''
  const { plan, bytesWritten, bytesKept, seconds, verified } = end
  const written = `Done. Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${verified ? '' : 'not '}verified.`
  const whole = renderWhole(end)
  return [
    written,
    ...(bytesKept ? [`${renderExactSize(bytesKept)} of it was already on the disk.`] : []),
    ...(whole === null ? [] : [whole]),
    ...(plan.sha256 === null ? [] : ['The checksum of the image matches.']),
    ...(end.warnings ?? []).map((warning) => `Warning: ${warning}.`),
  ].join(' ')
}
