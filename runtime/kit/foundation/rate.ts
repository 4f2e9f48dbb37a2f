/** Renders rates, durations and percentages as text. */
import { renderSize } from './size.ts'

export const renderRate = (bytesPerSecond: number): string => `${renderSize(bytesPerSecond)}/s`

/** Renders seconds as a clock shows them, for example `0:07`, `12:03`, `1:02:03`. */
export function renderDuration(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds))
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  const tail = twoDigits(whole % 60)
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${tail}` : `${minutes}:${tail}`
}

/** Renders a fraction (0 to 1) in whole percents, `100%` only at the very end. */
export const renderPercent = (fraction: number): string =>
  // A little more than nothing: 0.58 times 100 is 57.99999999999999.
  `${Math.min(100, Math.max(0, Math.floor(fraction * 100 + 1e-12)))}%`

const twoDigits = (value: number) => String(value).padStart(2, '0')
