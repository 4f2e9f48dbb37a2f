/** A file that grows: how far it has come, and waiting for more of it. */
import { untilAborted } from './watch.ts'

export interface Growth {
  /** What has come so far. */
  readonly bytes: number
  /** Null: nobody knows. */
  readonly total: number | null
  /** Resolves once the first byte can come; rejects where none will. */
  readonly started: Promise<void>
  start(bytes: number, total: number | null): void
  add(bytes: number): void
  /** What there is, is all there is, and it is right. */
  complete(): void
  fail(reason: unknown): void
  /**
   * How many bytes can be read from `offset` on; waits until it is at least one, or 0 at the end. The
   * last byte of a file is held back until the whole is known to be right, so that nobody has all of
   * a wrong one. Throws the reason where it failed.
   */
  available(offset: number, signal: AbortSignal): Promise<number>
}

type State =
  | { readonly kind: 'growing' }
  | { readonly kind: 'complete' }
  | { readonly kind: 'failed'; readonly reason: unknown }

export function createGrowth(): Growth {
  const { promise: started, resolve, reject } = Promise.withResolvers<void>()
  started.catch(() => {}) // Nobody may be waiting.
  let state: State = { kind: 'growing' }
  let bytes = 0
  let total: number | null = null
  let change = Promise.withResolvers<void>()

  function wake() {
    const before = change
    change = Promise.withResolvers()
    before.resolve()
  }

  function end(next: State) {
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
    get bytes() {
      return bytes
    },
    get total() {
      return total
    },
    started,
    start(from, whole) {
      bytes = from
      total = whole
      resolve()
    },
    add(count) {
      bytes += count
      wake()
    },
    complete() {
      end({ kind: 'complete' })
      resolve()
    },
    fail(reason) {
      end({ kind: 'failed', reason })
      reject(reason)
    },
    async available(offset, signal) {
      while (state.kind === 'growing' && offset >= limit())
        await untilAborted(signal, change.promise)
      if (state.kind === 'failed') throw state.reason
      return Math.max(0, limit() - offset)
    },
  }
}
