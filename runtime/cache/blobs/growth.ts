/** Tracks how far a growing file has come, and waits for more of it. */
import { untilAborted } from '#kit/host/watch.ts'

export type Growth = ReturnType<typeof createGrowth>

type GrowthState =
  | { readonly kind: 'growing' }
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly reason: unknown }

export function createGrowth() {
  const { promise: started, resolve, reject } = Promise.withResolvers<void>()
  started.catch(() => {}) // Nobody may be waiting.
  let state: GrowthState = { kind: 'growing' }
  let bytes = 0
  let total: number | null = null
  let change = Promise.withResolvers<void>()

  function wake() {
    const before = change
    change = Promise.withResolvers()
    before.resolve()
  }

  function end(next: GrowthState) {
    if (state.kind !== 'growing') return
    state = next
    wake()
  }

  /** The offset at which readers must wait for now. */
  function limit() {
    if (state.kind === 'complete' || total === null) return bytes
    return Math.min(bytes, total - 1)
  }

  return {
    get bytes() {
      return bytes
    },
    /** Null: unknown. */
    get total() {
      return total
    },
    /** Rejects where no byte will come. */
    started,
    start(from: number, whole: number | null) {
      bytes = from
      total = whole
      resolve()
    },
    add(count: number) {
      bytes += count
      wake()
    },
    complete() {
      end({ kind: 'complete' })
      resolve()
    },
    fail(reason: unknown) {
      end({ kind: 'failed', reason })
      reject(reason)
    },
    /**
     * Bytes readable from `offset`: waits for at least one, 0 at the end. The last byte is held
     * back until the file is verified, so that nobody has all of a wrong one. Throws the reason of
     * a failure.
     */
    async available(offset: number, signal: AbortSignal): Promise<number> {
      while (state.kind === 'growing' && offset >= limit())
        await untilAborted(signal, change.promise)
      if (state.kind === 'failed') throw state.reason
      return Math.max(0, limit() - offset)
    },
  }
}
