/** Estimates rate and time left from the progress of the last seconds. */

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
