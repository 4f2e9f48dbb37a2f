/** Ends a session at the cache service as well, if that accepts this server's sessions. */
import { renderCacheBase } from '#engine/catalog/rules/blob-address.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { parseHttpTarget } from '#kit/net/rules/image-location.ts'
import { askOnce } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'

interface CacheLogoutOptions {
  readonly url: string
  readonly cookie: string
  readonly env: Environment
  readonly log: { warn(message: string): void }
}

const MAX_WAIT_MS = 2000

/**
 * Never rejects: a failure is only logged. A cache with the same state directory knows already; one
 * with another key ignores the cookie.
 */
export async function endCacheSession({ url, cookie, env, log }: CacheLogoutOptions) {
  const target = url === '' ? null : parseHttpTarget(`${renderCacheBase(url)}/ui/logout`)
  if (target === null) return
  try {
    await askOnce(env, target, {
      method: 'POST',
      headers: { cookie },
      redirects: 'answer',
      maxBytes: 65_536,
      timeoutMs: MAX_WAIT_MS,
    })
  } catch (thrown) {
    log.warn(`could not end the session at the cache service: ${renderError(thrown)}`)
  }
}
