/** Says how far a flash is, and how it ended, in the words that every screen for people uses. Pure. */
import { renderDuration, renderExactSize, renderPartOf, renderSize } from '#kit/foundation/size.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { GROWING, type FlashEvent, type WriteProgress } from '#engine/flash/rules/flash.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'

const { flashing: TEXTS, outcome: ENDS } = WIZARD_TEXTS

interface ShownProgress {
  readonly phase: string
  readonly progress: WriteProgress | null
}

const PHASES: { readonly [Name in FlashEvent['event']]?: string } = {
  started: TEXTS.preparing,
  provisioning: TEXTS.firstBoot,
  synced: TEXTS.partitions,
  partprobed: TEXTS.done,
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
  if (note === GROWING) return TEXTS.growing
  if (phase === 'write') return delta === undefined ? TEXTS.writing : TEXTS.delta[delta]
  const isLess = total_bytes !== null && total_bytes < (before?.bytes_written ?? 0)
  return isLess ? TEXTS.readingBackSamples : TEXTS.readingBack
}

export function renderWaiting(phase: string, progress: WriteProgress | null): string {
  const bottleneck = progress?.bottleneck ?? null
  if (bottleneck === null) return phase
  return fill(TEXTS.waitingFor, { phase, part: TEXTS.parts[bottleneck] })
}

/** `1.2 of 3.4 GB of the image read, 12 s so far`. `storedBytes` null: unknown. */
export function renderReadSoFar(
  progress: WriteProgress | null,
  storedBytes: number | null,
  time: string,
): string {
  if (progress === null || progress.phase !== 'write') return fill(TEXTS.soFar, { time })
  const { bytes_read: read } = progress
  const amount = storedBytes === null ? renderSize(read) : renderPartOf(read, storedBytes)
  return fill(TEXTS.readSoFar, { amount, time })
}

/** Null: only what differs was written, or all was wanted. */
export const renderWhole = ({
  delta = null,
}: Pick<Extract<FlashOutcome, { kind: 'done' }>, 'delta'>): string | null =>
  delta === null || delta === 'compared' ? null : ENDS.whole[delta]

/** Empty where the flash did not succeed. */
export function renderSuccess(end: FlashOutcome | null): string {
  if (end?.kind !== 'done') return ''
  const { plan, bytesWritten, bytesKept, seconds, verified } = end
  const written = fill(verified ? ENDS.verified : ENDS.notVerified, {
    size: renderExactSize(bytesWritten),
    disk: plan.target.path,
    time: renderDuration(seconds),
  })
  const whole = renderWhole(end)
  return [
    written,
    ...(bytesKept ? [fill(ENDS.kept, { size: renderExactSize(bytesKept) })] : []),
    ...(whole === null ? [] : [whole]),
    ...(plan.sha256 === null ? [] : [ENDS.checksumMatches]),
    ...(end.warnings ?? []).map((warning) => fill(ENDS.warning, { warning })),
  ].join(' ')
}
