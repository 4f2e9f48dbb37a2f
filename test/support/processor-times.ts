/** What a process had of a processor, and how long it waited for one because others had them all. */
import { readFileSync } from 'node:fs'

export interface ProcessorTimes {
  /** Milliseconds of its first thread. */
  readonly worked: number
  readonly waited: number
}

/** A process that has ended has none. */
export function readProcessorTimes(pid: number | undefined): ProcessorTimes {
  try {
    const [worked = 0, waited = 0] = readFileSync(`/proc/${pid}/schedstat`, 'utf8')
      .split(' ')
      .map((nanoseconds) => Number(nanoseconds) / 1e6)
    return { worked, waited }
  } catch {
    return { worked: 0, waited: 0 }
  }
}

/** Returns what tells how many milliseconds these processes have waited since, while others had all processors. */
export function startWaits(pids: readonly (number | undefined)[]): () => number {
  const sum = () => pids.reduce((total: number, pid) => total + readProcessorTimes(pid).waited, 0)
  const before = sum()
  return () => sum() - before
}
