/** How fast something goes and how long it will take, from what was counted in the last seconds. */

export interface Pace {
  /** Counts `bytes` in total at `seconds` on any steady clock. */
  add(seconds: number, bytes: number): void
  /** Bytes per second over the window. */
  readonly rate: number
  /** Seconds until `total` at this rate; null when that cannot be said. */
  eta(total: number | null): number | null
}

/** Long enough to be calm, short enough to show a disk whose cache is full. */
const WINDOW_SECONDS = 6

export function createPace(): Pace {
  let samples: readonly (readonly [seconds: number, bytes: number])[] = []
  const rate = () => {
    const [first, last] = [samples[0], samples.at(-1)]
    if (first === undefined || last === undefined || last[0] <= first[0]) return 0
    return (last[1] - first[1]) / (last[0] - first[0])
  }
  return {
    add(seconds, bytes) {
      const recent = samples.filter(([at]) => at >= seconds - WINDOW_SECONDS)
      // The newest sample before the window stays, so that slow counts still make a rate.
      const before = samples[samples.length - recent.length - 1]
      samples = [
        ...(recent.length < 2 && before !== undefined ? [before] : []),
        ...recent,
        [seconds, bytes],
      ]
    },
    get rate() {
      return rate()
    },
    eta(total) {
      const done = samples.at(-1)?.[1] ?? 0
      const speed = rate()
      return total === null || total < done || speed <= 0 ? null : (total - done) / speed
    },
  }
}
