/** How fast something is while it is at work: bytes over the time in which anything was under way. */

interface BusyMeter {
  begin(seconds: number): void
  end(seconds: number, bytes: number): void
  /** Bytes per second; null until enough was seen to tell. */
  readonly rate: number | null
}

/** Less than this says nothing: a cache may have swallowed it. */
const MIN_BYTES = 8 * 1024 * 1024

export function createBusyMeter(): BusyMeter {
  let underWay = 0
  let since = 0
  let busySeconds = 0
  let doneBytes = 0
  return {
    begin(seconds) {
      if (underWay === 0) since = seconds
      underWay += 1
    },
    end(seconds, bytes) {
      underWay -= 1
      doneBytes += bytes
      busySeconds += seconds - since
      since = seconds
    },
    get rate() {
      return doneBytes < MIN_BYTES || busySeconds <= 0 ? null : doneBytes / busySeconds
    },
  }
}
