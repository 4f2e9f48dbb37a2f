/** Renders bytes for people: files and free space in decimal units, disks as sold, memory in GiB. */
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'] as const

/** With three digits: `1.50 kB`, `12.3 GB`, `500 GB`; exact below 1000 bytes: `512 B`. */
export function renderSize(bytes: number): string {
  const [value, unit] = scale(bytes)
  return unit === 'B' ? `${Math.round(value)} B` : `${threeDigits(value)} ${unit}`
}

/** Renders the size of a disk as its maker prints it: `500 GB`, `1 TB`, `1.92 TB`, `15.36 TB`. */
export function renderDiskSize(bytes: number): string {
  const [value, unit] = scale(bytes)
  const shown = unit === 'TB' && value < 99.995 ? value.toFixed(2) : threeDigits(value)
  return `${Number(shown)} ${unit}`
}

/** Renders bytes of memory as it is sold: `16 GiB`, `1.5 GiB`, `512 MiB`. */
export function renderMemory(bytes: number): string {
  const [value, unit] = bytes < 2 ** 30 ? [bytes / 2 ** 20, 'MiB'] : [bytes / 2 ** 30, 'GiB']
  return `${Number(value < 99.95 ? threeDigits(value) : value.toFixed(0))} ${unit}`
}

/** Renders a size and the exact number behind it: `4.29 GB (4294967296 bytes)`. */
export const renderExactSize = (bytes: number): string => withBytes(bytes, renderSize(bytes))

export const renderExactDiskSize = (bytes: number): string =>
  withBytes(bytes, renderDiskSize(bytes))

const withBytes = (bytes: number, text: string) =>
  bytes < 1000 ? `${bytes} bytes` : `${text} (${bytes} bytes)`

/** Renders how many bytes of a total are done, in the total's unit: `1.80 of 4.00 GB`. */
export function renderPartOf(done: number, total: number): string {
  const [whole, unit] = scale(total)
  const part = whole === 0 ? 0 : (done / total) * whole
  const digits = unit === 'B' ? 0 : decimals(whole)
  return `${part.toFixed(digits)} of ${whole.toFixed(digits)} ${unit}`
}

function scale(bytes: number): readonly [number, (typeof UNITS)[number]] {
  let value = bytes
  for (const unit of UNITS) {
    // 999.5 would be shown as 1000: the next unit says it in three digits.
    if (value < 999.5) return [value, unit]
    value /= 1000
  }
  return [value * 1000, 'PB']
}

function decimals(value: number): number {
  if (value < 9.995) return 2
  return value < 99.95 ? 1 : 0
}

const threeDigits = (value: number) => value.toFixed(decimals(value))

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

export type Pace = ReturnType<typeof createPace>

/** Long enough to be calm, short enough to show a disk whose cache is full. */
const WINDOW_SECONDS = 6

export function createPace() {
  let samples: readonly (readonly [seconds: number, bytes: number])[] = []
  const rate = (): number => {
    const [first, last] = [samples[0], samples.at(-1)]
    if (first === undefined || last === undefined || last[0] <= first[0]) return 0
    return (last[1] - first[1]) / (last[0] - first[0])
  }
  return {
    /** Counts `bytes` in total at `seconds` on any steady clock. */
    add(seconds: number, bytes: number): void {
      const recent = samples.filter(([at]) => at >= seconds - WINDOW_SECONDS)
      // The newest sample before the window stays, so that slow counts still make a rate.
      const before = samples[samples.length - recent.length - 1]
      samples = [
        ...(recent.length < 2 && before !== undefined ? [before] : []),
        ...recent,
        [seconds, bytes],
      ]
    },
    /** Bytes per second over the window. */
    get rate() {
      return rate()
    },
    /** Seconds until `total` at this rate; null when it is unknown. */
    eta(total: number | null): number | null {
      const done = samples.at(-1)?.[1] ?? 0
      const speed = rate()
      return total === null || total < done || speed <= 0 ? null : (total - done) / speed
    },
  }
}
