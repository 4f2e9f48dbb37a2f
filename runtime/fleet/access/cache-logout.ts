/** Ends a session at the cache service as well, if that accepts this server's sessions. */
import { renderCacheBase } from '../../engine/catalog/rules/blob-address.ts'
import { renderError } from '../../kit/foundation/fault.ts'
import { parseHttpTarget } from '../../kit/net/rules/image-location.ts'
import { askOnce } from '../../kit/net/json-client.ts'
import type { Environment } from '../../kit/host/shell.ts'

interface CacheLogoutOptions {
  /** The cache service's address as it is set; empty: none. */
  readonly url: string
  /** `name=value`: a session that this server takes no more. */
  readonly cookie: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly log: { warn(message: string): void }
}

/** Logging out waits so long for it. */
const MAX_WAIT_MS = 2000

/**
 * Ends the session of a cookie at the cache. A cache with the same state directory knows already.
 * One that shares only the key gets the logout that a browser would send; one with another key
 * ignores the cookie. It never rejects: a failure is only logged.
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
