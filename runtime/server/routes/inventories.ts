/** Parses the inventories that machines post: small ones at once, larger ones one after the other in a thread. */
import { once } from 'node:events'
import { Worker } from 'node:worker_threads'
import type { Inventory } from '#engine/inventory/rules/machine.ts'
import { parseInventory, type InventoryRefusal } from '#engine/inventory/rules/inventory.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { refuse, type Result } from '#kit/foundation/result.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'

export type ParsedInventory = Result<Inventory, InventoryRefusal>

type Parsed = ParsedInventory | Result<never, 'busy'>

export interface Inventories {
  /** Takes the memory of a large body. `busy`: the thread failed, and the body may pass later. */
  parse(body: Buffer<ArrayBuffer>): MaybePromise<Parsed>
}

const MAX_PARSE_MS = 30_000

/** Twice what the worst bodies need: 8 MiB of keys that nobody knows, 250,000 values in the tree and as many beside it. */
const MAX_HEAP_MB = 512

/** It has the ending of this file: `.ts` here, `.js` in the npm package. */
const THREAD = new URL(import.meta.url.replace(/inventories(?=\.[jt]s$)/, 'inventory-thread'))

interface InventoriesOptions {
  readonly thread?: URL
  readonly maxParseMs?: number
}

/** The thread starts with the first large body, and ends with what is returned. */
export function createInventories(options: InventoriesOptions = {}) {
  const { thread = THREAD, maxParseMs = MAX_PARSE_MS } = options
  const ending = new AbortController()
  let worker: Worker | null = null
  let last: Promise<Parsed | null> = Promise.resolve(null)

  function start(): Worker {
    const started = new Worker(thread, { resourceLimits: { maxOldGenerationSizeMb: MAX_HEAP_MB } })
    // `once` rejects below; without a listener of its own an error would end the server.
    started.on('error', () => {})
    // The next body gets another one.
    started.once('exit', () => {
      if (worker === started) worker = null
    })
    return started
  }

  async function ask(body: Buffer<ArrayBuffer>): Promise<Parsed> {
    const late = new AbortController()
    const timer = setTimeout(() => late.abort(), maxParseMs)
    const signal = AbortSignal.any([ending.signal, late.signal])
    try {
      signal.throwIfAborted()
      // The system may have no thread left.
      worker ??= start()
      worker.ref()
      const answered = once(worker, 'message', { signal })
      worker.postMessage(body, [body.buffer])
      const [parsed] = await answered
      // It keeps no program alive that ends without a word.
      worker.unref()
      return parsed
    } catch {
      // It has no more memory, or takes too long: the next body gets another one.
      // Nobody waits for its end: while it collects garbage it may take long.
      void worker?.terminate()
      worker = null
      return refuse('busy')
    } finally {
      clearTimeout(timer)
    }
  }

  return {
    parse(body) {
      if (body.length <= LIMITS.smallBody) return parseInventory(body)
      const parsed = last.then(() => ask(body))
      last = parsed
      return parsed
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await last
      void worker?.terminate()
    },
  } satisfies Inventories & AsyncDisposable
}
