/** Runs work soon after it is requested, and less often the more it costs. */
import { delayUntilNext, intervalOf } from './rules/cadence.ts'

interface TickerOptions {
  readonly minMs: number
  clock(): number
  /** Resolves to the bytes that went out. */
  work(): number | Promise<number>
  failed(error: unknown): void
}

export function createTicker({ minMs, clock, work, failed }: TickerOptions) {
  let [lastAt, interval] = [-Infinity, minMs]
  let timer: NodeJS.Timeout | null = null

  async function tick(): Promise<void> {
    timer = null
    lastAt = clock()
    const startedAt = performance.now()
    try {
      const sent = await work()
      interval = Math.max(minMs, intervalOf(sent, performance.now() - startedAt))
    } catch (error) {
      failed(error)
    }
  }

  return {
    schedule() {
      timer ??= setTimeout(() => void tick(), delayUntilNext(lastAt, clock(), interval)).unref()
    },
    stop() {
      if (timer !== null) clearTimeout(timer)
    },
  }
}
