/** Checks each initrd of the boot directory once, in the background, and remembers the result. */
import { createDecoders } from '#engine/image/formats.ts'
import { readInitrdKind, type InitrdKind } from './initrd-kind.ts'
import { createQueue } from '#kit/host/queue.ts'
import { createShell } from '#kit/host/shell.ts'
import { settle } from '#kit/host/watch.ts'

interface InitrdFile {
  readonly path: string
  readonly sizeBytes: number
  readonly changedMs: number
}

/** The slowest machine needs less for a large initrd; beyond it, the result is `unknown`. */
const JUDGE_MS = 30_000
const MAX_KEPT = 1000

export function createInitrdJudge() {
  // xz needs a tool; without it such an initrd counts.
  const decoders = createDecoders({ shell: createShell({ env: {} }) })
  const kinds = new Map<string, InitrdKind | null>()
  const stop = new AbortController()
  const enqueue = createQueue(1)

  const whenIdle = () => enqueue(async () => undefined)

  async function judge(key: string, path: string): Promise<void> {
    if (stop.signal.aborted) return
    const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(JUDGE_MS)])
    kinds.set(key, await readInitrdKind(path, decoders, signal))
  }

  return {
    /** Null: not known yet; it will be a little later. */
    kindOf({ path, sizeBytes, changedMs }: InitrdFile): InitrdKind | null {
      const key = `${path}\0${sizeBytes}\0${changedMs}`
      const known = kinds.get(key)
      if (known !== undefined) return known
      kinds.set(key, null)
      for (const [oldest, kind] of kinds) {
        if (kinds.size <= MAX_KEPT) break
        if (kind !== null) kinds.delete(oldest)
      }
      void enqueue(() => judge(key, path))
      return null
    },
    /** Resolves when every asked file is known, or after `ms`. */
    settle: (ms: number) => settle(whenIdle(), ms),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await whenIdle()
    },
  }
}
