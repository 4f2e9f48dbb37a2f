/** Clocks that run while something is waited for, also while the wait still lasts. */
import type { Waited, WaitedFor } from '../../core/flash/bottleneck.ts'

export interface Waits {
  /** The same promise's outcome; its time counts. */
  during<Value>(kind: keyof Waited, wait: Promise<Value>): Promise<Value>
  /** What was waited since the last look. */
  look(): WaitedFor
}

/** Seconds. */
const now = () => performance.now() / 1000

export function createWaits(): Waits {
  const clocks = { disk: createClock(), filling: createClock(), source: createClock() }
  let since = now()
  return {
    async during(kind, wait) {
      clocks[kind].begin()
      try {
        return await wait
      } finally {
        clocks[kind].end()
      }
    },
    look() {
      const { disk, filling, source } = clocks
      const span = now() - since
      since = now()
      return { disk: disk.take(), filling: filling.take(), source: source.take(), span }
    },
  }
}

/** Runs while at least one wait is under way. */
function createClock() {
  let waiting = 0
  let since = 0
  let spent = 0
  const settle = () => {
    if (waiting > 0) spent += now() - since
    since = now()
  }
  return {
    begin() {
      settle()
      waiting += 1
    },
    end() {
      settle()
      waiting -= 1
    },
    take() {
      settle()
      const taken = spent
      spent = 0
      return taken
    },
  }
}
