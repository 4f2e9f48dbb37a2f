/** Renders the progress of a write on one line, for the live bar and for the log. */
import type { WriteProgress } from '#engine/flash/rules/flash.ts'
import { renderDuration, renderPercent, renderRate } from '#kit/foundation/rate.ts'
import { renderPartOf, renderSize } from '#kit/foundation/size.ts'
import { fill } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'

const TEXTS = WIZARD_TEXTS.bar

interface BarStyle {
  /** The line stays shorter than this. */
  readonly columns: number
  readonly unicode: boolean
  /** The measure of progress where the decoded size is unknown. */
  readonly storedBytes: number | null
  /** A capture: its progress counts as reading. */
  readonly isReading?: boolean
}

/** 0 to 1; null: the total is unknown. */
export function fractionOf(
  { phase, bytes_read, bytes_written, total_bytes }: WriteProgress,
  storedBytes: number | null,
): number | null {
  if (total_bytes !== null && total_bytes > 0) return clamp(bytes_written / total_bytes)
  const isReading = phase === 'write' && storedBytes !== null && storedBytes > 0
  return isReading ? clamp(bytes_read / storedBytes) : null
}

/** As far as known: `45%  1.80 of 4.00 GB  412 MB/s`. */
export function renderStatus(progress: WriteProgress, storedBytes: number | null): string {
  return statusParts(progress, storedBytes).join('  ')
}

/**
 * Shorter than the terminal: ` write 45% [#########----------] 1.80 of 4.00 GB 412 MB/s 0:05 left`
 */
export function renderBar(progress: WriteProgress, style: BarStyle): string {
  const fraction = fractionOf(progress, style.storedBytes)
  const [percent, ...details] = statusParts(progress, style.storedBytes)
  const { phases } = TEXTS
  const width = Math.max(...Object.values(phases).map(({ length }) => length))
  const phase = style.isReading === true ? 'read' : progress.phase
  const head = ` ${phases[phase].padEnd(width)} ${(percent ?? '').padStart(4)}`
  const tail = details.join('  ')
  const room = Math.min(40, style.columns - 1 - head.length - tail.length - 4)
  const bar = fraction !== null && room >= 8 ? ` ${drawBar(fraction, room, style.unicode)}` : ''
  return `${head}${bar}  ${tail}`.slice(0, style.columns - 1)
}

function statusParts(progress: WriteProgress, storedBytes: number | null): readonly string[] {
  const { bytes_written, total_bytes, rate, eta_seconds } = progress
  const fraction = fractionOf(progress, storedBytes)
  return [
    fraction === null ? '' : renderPercent(fraction),
    total_bytes === null ? renderSize(bytes_written) : renderPartOf(bytes_written, total_bytes),
    ...(rate > 0 ? [renderRate(rate)] : []),
    ...(eta_seconds === null ? [] : [fill(TEXTS.left, { time: renderDuration(eta_seconds) })]),
  ]
}

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'] as const

function drawBar(fraction: number, width: number, unicode: boolean): string {
  if (!unicode) {
    const inner = width - 2
    const done = Math.floor(fraction * inner)
    return `[${'#'.repeat(done)}${'-'.repeat(inner - done)}]`
  }
  const eighths = Math.floor(fraction * width * 8)
  const full = '█'.repeat(Math.floor(eighths / 8))
  const drawn = full + (EIGHTHS[eighths % 8] ?? '')
  return drawn + '░'.repeat(width - drawn.length)
}

const clamp = (fraction: number) => Math.min(1, Math.max(0, fraction))
