/** Tells the cache service which images machines are bound to, so that it keeps those. */
import { renderCacheBase } from '../core/blob-address.ts'
import { Fault } from '../core/fault.ts'
import { createCacheClient } from './cache-client.ts'
import type { Feed } from './feed.ts'

export interface PinnerParts {
  /** The cache service's address as it is set now; null: none. */
  url(): string | null
  /** What it takes for a token; null: it is told nothing. */
  token(): Promise<string | null>
  /** The refs of all machines, each as often as it comes. */
  bound(): Promise<readonly (string | null)[]>
  /** What the cache service calls this server. */
  readonly holder: string
  readonly feed: Feed
  readonly log: { warn(message: string): void }
  /** Milliseconds for changes to gather. */
  readonly waitMs?: number
  /** Milliseconds after which it is told again, though nothing has changed. */
  readonly againMs?: number
}

/**
 * Tells at the start, soon after a machine has changed, and now and then. All of it is best effort: a
 * service that cannot be told, or knows nothing of this, goes by what was used.
 */
export function createPinner(parts: PinnerParts): AsyncDisposable {
  const { feed, log, waitMs = 2000, againMs = 3_600_000 } = parts
  let told = ''
  let waiting: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()

  async function tell() {
    const [base, token] = [renderCacheBase(parts.url() ?? ''), await parts.token()]
    if (base === '' || token === null) return
    const refs = [...new Set((await parts.bound()).filter((ref) => ref !== null))].toSorted()
    const words = `${base} ${refs.join(' ')}`
    if (words === told) return
    await createCacheClient({ base, token }).pin(parts.holder, refs)
    told = words
  }

  function tellQuietly() {
    work = work.then(tell).catch((thrown: unknown) => {
      // A service of another make has no such thing.
      if (thrown instanceof Fault && thrown.code === 'not-found') return
      if (thrown instanceof Fault && thrown.code === 'upstream-failed') return
      log.warn(`the cache service was not told which images are needed: ${String(thrown)}`)
    })
  }

  function schedule() {
    waiting ??= setTimeout(() => {
      waiting = undefined
      tellQuietly()
    }, waitMs).unref()
  }

  const stopListening = feed.listen(({ topic }) => {
    if (topic === 'machine' || topic === 'settings') schedule()
  })
  const again = setInterval(() => {
    told = ''
    schedule()
  }, againMs).unref()
  schedule()

  return {
    async [Symbol.asyncDispose]() {
      stopListening()
      clearInterval(again)
      clearTimeout(waiting)
      await work
    },
  }
}
