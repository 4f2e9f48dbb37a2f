/** Tells the cache service which images machines are bound to, so that it keeps those. */
import { renderCacheBase } from '../core/blob-address.ts'
import { Fault, renderError, type FaultCode } from '../core/fault.ts'
import { createCacheClient } from './cache-client.ts'
import type { Change, Feed } from './feed.ts'

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
  const closing = new AbortController()
  let told = ''
  let complaint = ''
  let waiting: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()

  async function tell() {
    const [base, token] = [renderCacheBase(parts.url() ?? ''), await parts.token()]
    if (base === '' || token === null || closing.signal.aborted) return
    const refs = [...new Set((await parts.bound()).filter((ref) => ref !== null))].toSorted()
    const words = `${base} ${refs.join(' ')}`
    if (words === told) return
    await createCacheClient({ base, token, signal: closing.signal }).pin(parts.holder, refs)
    told = words
    complaint = ''
  }

  function complain(thrown: unknown) {
    // No answer: the catalog says so. Not found: a service of another make has no such thing.
    const isUsual = thrown instanceof Fault && USUAL.includes(thrown.code)
    const words = renderError(thrown)
    if (isUsual || closing.signal.aborted || words === complaint) return
    complaint = words
    log.warn(`the cache service was not told which images are needed: ${words}`)
  }

  function schedule() {
    waiting ??= setTimeout(() => {
      waiting = undefined
      work = work.then(tell).catch(complain)
    }, waitMs).unref()
  }

  const stopListening = feed.listen(({ topic }) => {
    if (TOPICS.includes(topic)) schedule()
  })
  const again = setInterval(() => {
    told = ''
    schedule()
  }, againMs).unref()
  schedule()

  return {
    async [Symbol.asyncDispose]() {
      closing.abort()
      stopListening()
      clearInterval(again)
      clearTimeout(waiting)
      await work
    },
  }
}

/** A catalog with news is that of a service which answers, perhaps for the first time. */
const TOPICS: readonly Change['topic'][] = ['machine', 'settings', 'catalog']
const USUAL: readonly FaultCode[] = ['not-found', 'upstream-failed']
