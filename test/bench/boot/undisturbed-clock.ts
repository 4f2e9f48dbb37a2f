/** Tells the time of a machine without what others took of the host: its processor's waits for its turn are left out. */
import { readdirSync, readFileSync } from 'node:fs'

export interface UndisturbedClock extends Disposable {
  /** Seconds between two moments (milliseconds since the epoch), as they would have gone by on a host of its own. */
  between(from: number, to: number): number
}

interface Sample {
  readonly at: number
  /** Milliseconds for which the machine's processor has waited for one of the host's so far. */
  readonly waited: number
}

const SAMPLE_MS = 100

/** `pid`: of QEMU with one processor, which is its thread that has run for longest. */
export function startUndisturbedClock(pid: number): UndisturbedClock {
  const samples: Sample[] = []
  const take = () => {
    const waited = readWaited(pid)
    if (waited !== null) samples.push({ at: Date.now(), waited })
  }
  take()
  const timer = setInterval(take, SAMPLE_MS)
  return {
    between: (from, to) => (to - from - (waitedAt(samples, to) - waitedAt(samples, from))) / 1000,
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

/** The wait grows evenly between two samples. */
function waitedAt(samples: readonly Sample[], at: number): number {
  const next = samples.findIndex((sample) => sample.at >= at)
  const [before, after] = [samples[next - 1], samples[next]]
  if (after === undefined) return samples.at(-1)?.waited ?? 0
  if (before === undefined) return after.waited
  const part = (at - before.at) / (after.at - before.at)
  return before.waited + part * (after.waited - before.waited)
}

/** `schedstat` has nanoseconds of running, and of waiting for a processor. Null: the machine has ended. */
function readWaited(pid: number): number | null {
  try {
    const folder = `/proc/${pid}/task`
    const threads = readdirSync(folder).map((thread) =>
      readFileSync(`${folder}/${thread}/schedstat`, 'latin1').split(' ').map(Number),
    )
    const [longest] = threads.toSorted(([a = 0], [b = 0]) => b - a)
    return (longest?.[1] ?? 0) / 1e6
  } catch {
    return null
  }
}
