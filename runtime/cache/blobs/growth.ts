/** Tracks how far a growing file has come, and waits for more of it. */
import { untilAborted } from '../../kit/host/watch.ts'

export type Growth = ReturnType<typeof createGrowth>

type GrowthState =
  | { readonly kind: 'growing' }
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly reason: unknown }

/** Creates the state of a file whose bytes are still coming. */
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

  /** Where reading must stop for now. */
  function limit() {
    if (state.kind === 'complete' || total === null) return bytes
    return Math.min(bytes, total - 1)
  }

  return {
    /** What has come so far. */
    get bytes() {
      return bytes
    },
    /** Null: nobody knows. */
    get total() {
      return total
    },
    /** Resolves once the first byte can come; rejects where none will. */
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
    /** What there is, is all there is, and it is right. */
    complete() {
      end({ kind: 'complete' })
      resolve()
    },
    fail(reason: unknown) {
      end({ kind: 'failed', reason })
      reject(reason)
    },
    /**
     * How many bytes can be read from `offset` on; waits until it is at least one, or 0 at the end.
     * The last byte of a file is held back until the whole is known to be right, so that nobody has
     * all of a wrong one. Throws the reason where it failed.
     */
    async available(offset: number, signal: AbortSignal): Promise<number> {
      while (state.kind === 'growing' && offset >= limit())
        await untilAborted(signal, change.promise)
      if (state.kind === 'failed') throw state.reason
      return Math.max(0, limit() - offset)
    },
  }
}
