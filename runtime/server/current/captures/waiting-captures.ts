/** Counts the captured images that wait for a review at the cache service, for the navigation of the pages. */
import { z } from 'zod'
import { renderCacheBase } from '#engine/catalog/rules/cache-entry.ts'
import { createCacheClient } from '#engine/catalog/cache-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import { settle } from '#kit/host/watch.ts'

interface WaitingDependencies {
  url(): string | null
  /** Null: it is not asked. */
  token(): Promise<string | null>
  /** For proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly freshMs?: number
  /** A later answer is for the next page. */
  readonly waitMs?: number
}

const CapturesSchema = z.object({ captures: z.array(z.object({ status: z.string() })) })
const TIMEOUT_MS = 5000

/** Pages share one request, and none waits for a cache that did not answer the last one. */
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
    // The count of another cache is no use.
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

/** Null: the token is unknown. */
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
