/** Measures how long each part of a write is waited for, including waits that still last. */
import type { Waited, WaitedFor } from './rules/bottleneck.ts'

/** Seconds. */
const now = () => performance.now() / 1000

export type Waits = ReturnType<typeof createWaits>

export function createWaits() {
  const clocks = { disk: createClock(), filling: createClock(), source: createClock() }
  let since = now()
  return {
    /** The same promise's outcome; its time counts. */
    async during<Value>(kind: keyof Waited, wait: Promise<Value>): Promise<Value> {
      clocks[kind].begin()
      try {
        return await wait
      } finally {
        clocks[kind].end()
      }
    },
    /** What was waited since the last look. */
    look(): WaitedFor {
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
