/** Counts the captured images that wait for a review at the cache service, for the navigation of the pages. */
import { z } from 'zod'
import { renderCacheBase } from '../../../engine/catalog/rules/blob-address.ts'
import { createCacheClient } from '../../../engine/catalog/cache-client.ts'
import type { Environment } from '../../../kit/host/shell.ts'
import { settle } from '../../../kit/host/watch.ts'

interface WaitingDependencies {
  /** The address of the cache service as it is set now; null: none. */
  url(): string | null
  /** Its API token; null: it is not asked. */
  token(): Promise<string | null>
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  /** Milliseconds for which a count holds. */
  readonly freshMs?: number
  /** Milliseconds that a page waits for an answer; a later one is for the next page. */
  readonly waitMs?: number
}

const CapturesSchema = z.object({ captures: z.array(z.object({ status: z.string() })) })
const TIMEOUT_MS = 5000

/**
 * Creates what counts them: many pages share one request, and none waits for a cache that did not
 * answer the last one. Nothing is counted where the cache or its token is unknown.
 */
export function createWaitingCaptures(dependencies: WaitingDependencies): () => Promise<number> {
  const { freshMs = 10_000, waitMs = 300 } = dependencies
  let [count, askedAt, isSilent] = [0, -Infinity, false]
  let asked: { readonly base: string; readonly done: Promise<void> } | null = null
  let known = ''

  async function ask(base: string) {
    const answer = await fetchCount(dependencies, base).catch(() => null)
    if (known !== base) return
    count = answer ?? 0
    isSilent = answer === null
    askedAt = performance.now()
  }

  return async () => {
    const base = renderCacheBase(dependencies.url() ?? '')
    // What was counted at another cache says nothing of this one.
    if (base !== known) [known, count, askedAt, isSilent] = [base, 0, -Infinity, false]
    if (base === '' || performance.now() - askedAt < freshMs) return count
    if (asked?.base !== base) {
      const mine = {
        base,
        done: ask(base).finally(() => {
          if (asked === mine) asked = null
        }),
      }
      asked = mine
    }
    if (!isSilent) await settle(asked.done, waitMs)
    return count
  }
}

/** Null: its token is unknown. */
async function fetchCount(
  { token, env }: WaitingDependencies,
  base: string,
): Promise<number | null> {
  const given = await token()
  if (given === null) return null
  const client = createCacheClient({ base, token: given, env, timeoutMs: TIMEOUT_MS })
  const { captures } = CapturesSchema.parse(await client.listCaptures())
  return captures.filter(({ status }) => status === 'waiting').length
}
