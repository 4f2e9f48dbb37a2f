/** Measures throughput while something is busy: bytes over the time in which any work was under way. */

/** Less than this may only have gone into a cache. */
const MIN_BYTES = 8 * 1024 * 1024

export function createBusyMeter() {
  let underWay = 0
  let since = 0
  let busySeconds = 0
  let doneBytes = 0
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
    },
    /** Bytes per second; null until enough was done to measure. */
    get rate(): number | null {
      return doneBytes < MIN_BYTES || busySeconds <= 0 ? null : doneBytes / busySeconds
    },
  }
}
