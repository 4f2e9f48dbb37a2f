/** Tells the cache service which images machines are bound to, so that it keeps those. */
import { renderCacheBase } from '../../core/catalog/blob-address.ts'
import { Fault, renderError } from '../../core/foundation/fault.ts'
import { createCacheClient } from '../net/cache-client.ts'
import type { Change, Feed } from '../host/feed.ts'
import type { Environment } from '../host/shell.ts'

interface PinnerDependencies {
  /** The cache service's address as it is set now; null: none. */
  url(): string | null
  /** What it takes for a token; null: it is told nothing. */
  token(): Promise<string | null>
  /** The refs of all machines, each as often as it comes. */
  bound(): Promise<readonly (string | null)[]>
  /** What the cache service calls this server. */
  readonly holder: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly feed: Feed
  readonly log: { warn(message: string): void }
  /** Milliseconds for changes to gather. */
  readonly waitMs?: number
  /** Milliseconds after which it is told again, though nothing has changed. */
  readonly againMs?: number
}

/**
 * Tells at the start, soon after a machine has changed, and now and then. All of it is best effort: a
 * service that cannot be told, or knows nothing of this, goes by what was used. What it refused it is
 * told again only when there is reason to hope; one that did not answer, at the next change.
 */
export function createPinner(parts: PinnerDependencies): AsyncDisposable {
  const { env, feed, holder, log, waitMs = 2000, againMs = 3_600_000 } = parts
  const closing = new AbortController()
  let told = ''
  let refused = ''
  /** Counts the reasons to hope. */
  let hopes = 0
  /** The kinds of trouble that were said since it last worked. */
  const complaints = new Set<string>()
  let waiting: NodeJS.Timeout | undefined
  let work: Promise<void> = Promise.resolve()

  async function tell() {
    // What happens from here on is a reason to say it again.
    const hope = hopes
    const [base, token] = [renderCacheBase(parts.url() ?? ''), await parts.token()]
    if (base === '' || token === null || closing.signal.aborted) return
    const refs = [...new Set((await parts.bound()).filter((ref) => ref !== null))].toSorted()
    const words = `${base} ${refs.join(' ')}`
    if (words === told || `${hope} ${words}` === refused) return
    const client = createCacheClient({ base, token, env, signal: closing.signal })
    const answer = await client.pin(holder, refs)
    if (answer.ok) {
      told = words
      complaints.clear()
      return
    }
    refused = `${hope} ${words}`
    // A service of another make has no such thing.
    if (answer.refusal.code !== 'not-found') complain(answer.refusal, 'refused')
  }

  /** `how`: one code may stand for a refusal and for silence. */
  function complain(thrown: unknown, how: 'refused' | 'failed') {
    const code = thrown instanceof Fault ? thrown.code : null
    const kind = `${how} ${code} ${parts.url()}`
    if (closing.signal.aborted || complaints.has(kind)) return
    complaints.add(kind)
    log.warn(`the cache service was not told which images are needed: ${renderError(thrown)}`)
  }

  function schedule() {
    waiting ??= setTimeout(() => {
      waiting = undefined
      work = work.then(tell).catch((thrown: unknown) => complain(thrown, 'failed'))
    }, waitMs).unref()
  }

  const stopListening = feed.listen(({ topic }) => {
    if (HOPEFUL.has(topic)) hopes += 1
    if (HOPEFUL.has(topic) || topic === 'machine') schedule()
  })
  const again = setInterval(() => {
    told = ''
    hopes += 1
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
const HOPEFUL: ReadonlySet<Change['topic']> = new Set(['settings', 'catalog'])
