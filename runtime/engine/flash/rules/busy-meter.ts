/** Measures throughput while something is busy: bytes over the time in which any work was under way. */

/** Less than this may only have gone into a cache. */
const MIN_BYTES = 8 * 1024 * 1024

/** `memoryBytes`: what was done longer ago than about so many bytes fades; by default all of it counts. */
export function createBusyMeter(memoryBytes = Infinity) {
  let underWay = 0
  let since = 0
  let busySeconds = 0
  let doneBytes = 0
  const rateOf = (seconds: number): number | null =>
    doneBytes < MIN_BYTES || seconds <= 0 ? null : doneBytes / seconds
  return {
    begin(seconds: number): void {
      if (underWay === 0) since = seconds
      underWay += 1
    },
    end(seconds: number, bytes: number): void {
      underWay -= 1
      doneBytes += bytes
      busySeconds += seconds - since
      since = seconds
      if (doneBytes <= memoryBytes) return
      doneBytes /= 2
      busySeconds /= 2
    },
    /** Bytes per second; null until enough was done to measure. */
    get rate(): number | null {
      return rateOf(busySeconds)
    },
    /** The same by now: what is under way has done nothing yet, but its time counts. */
    rateAt: (seconds: number): number | null =>
      rateOf(busySeconds + (underWay > 0 ? seconds - since : 0)),
  }
}
