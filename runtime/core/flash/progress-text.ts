/** Says how far a flash is, and how it ended, in the words that every surface for people uses. Pure. */
import { renderDuration } from '../foundation/rate.ts'
import { renderExactSize, renderPartOf, renderSize } from '../foundation/size.ts'
import type { WriteProgress } from './flash.ts'
import type { FlashOutcome } from './outcome.ts'

/** What begins with this event; `before`: where the phase before it ended. */
export function renderPhase(
  { phase, total_bytes }: WriteProgress,
  before: WriteProgress | null,
): string {
  if (phase === 'write') return 'writing'
  const isLess = total_bytes !== null && total_bytes < (before?.bytes_written ?? 0)
  return `reading back what was written${isLess ? ', samples of its zeros' : ''}`
}

/** Where it would have to be made faster. */
export function renderWait(progress: WriteProgress | null): string {
  const { bottleneck } = progress ?? {}
  return bottleneck === null || bottleneck === undefined ? '' : `, waiting for the ${bottleneck}`
}

/** `1.2 of 3.4 GB of the image read, `; empty where nothing is read. */
export function renderAmountRead(
  progress: WriteProgress | null,
  storedBytes: number | null,
): string {
  if (progress === null || progress.phase !== 'write') return ''
  const { bytes_read: read } = progress
  const amount = storedBytes === null ? renderSize(read) : renderPartOf(read, storedBytes)
  return `${amount} of the image read, `
}

/** What was written, and whether it is right; empty where the flash did not succeed. */
export function renderSuccess(end: FlashOutcome | null): string {
  if (end?.kind !== 'done') return ''
  const { plan, bytesWritten, seconds, verified } = end
  const readBack = verified ? 'verified' : 'not verified'
  const digest = plan.sha256 === null ? '' : ' The checksum of the image matches.'
  return `Wrote ${renderExactSize(bytesWritten)} to ${plan.target.path} in ${renderDuration(seconds)}, ${readBack}.${digest}`
}
