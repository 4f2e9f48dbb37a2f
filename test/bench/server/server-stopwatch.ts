/** Takes the time, and the CPU time on both sides of the connection, while answers come in. */
import type { Load } from './server-load.ts'
import { readTreeUse } from '../process-tree.ts'
import type { Answer } from './server-wire.ts'

export interface Stopwatch {
  note(answer: Answer, isRight: boolean): void
  stop(): Load
}

/** `pid`: the server's. */
export function startStopwatch(pid: number): Stopwatch {
  const took: number[] = []
  let [bytes, wrong] = [0, 0]
  const serverBefore = readTreeUse(pid).cpuSeconds
  const loadBefore = process.cpuUsage()
  const startedAt = performance.now()
  return {
    note(answer, isRight) {
      took.push(answer.milliseconds)
      bytes += answer.bytes
      if (!isRight) wrong += 1
    },
    stop() {
      const seconds = (performance.now() - startedAt) / 1000
      const { user, system } = process.cpuUsage(loadBefore)
      const sorted = Float64Array.from(took).toSorted()
      const at = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? 0
      return {
        seconds,
        count: took.length,
        bytes,
        wrong,
        latencies: { p50: at(0.5), p99: at(0.99), worst: at(1) },
        serverCpu: readTreeUse(pid).cpuSeconds - serverBefore,
        loadCpu: (user + system) / 1e6,
      }
    },
  }
}
