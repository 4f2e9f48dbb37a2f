/** Asks an OpenID provider over HTTP: only addresses that it named itself, each within a time and a size. */
import type { Environment } from '../../host/shell.ts'
import { askOnce } from '../json-client.ts'
import { parseHttpTarget } from '../rules/image-location.ts'
import { codedError, MISDIRECTED } from '../rules/network-failure.ts'
import { isAskable } from './rules/provider-address.ts'

/** For one request, the answer included. */
export const PROVIDER_WAIT_MS = 10_000
/** Keys, documents and ID tokens with hundreds of groups are well below it. */
const MAX_ANSWER_BYTES = 524_288

interface ExchangeDependencies {
  readonly issuer: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly waitMs?: number | undefined
}

/** What openid-client asks for. */
interface Asked {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** Creates what openid-client fetches with. It follows no redirect. */
export function createExchange({ issuer, env, waitMs = PROVIDER_WAIT_MS }: ExchangeDependencies) {
  const permitted = new Set<string>()
  let skew: number | null = null

  return {
    /** Lets these addresses be asked from now on. Throws where one is on no line that nobody reads along. */
    permit(addresses: readonly string[]): void {
      for (const address of addresses) {
        if (!isAskable(address, issuer)) {
          throw codedError('OAUTH_HTTP_REQUEST_FORBIDDEN', 'an address without TLS')
        }
        permitted.add(new URL(address).href)
      }
    },
    /** How many seconds the provider's clock is ahead, as its last answer said; null: it did not. */
    skew: (): number | null => skew,
    /** Rejects with the network's errors, and where the address is none of the provider's. */
    async fetch(address: string, { method, headers, body, signal }: Asked): Promise<Response> {
      const target = permitted.has(new URL(address).href) ? parseHttpTarget(address) : null
      if (target === null)
        throw codedError(MISDIRECTED, 'it leads to an address that it does not name')
      const answer = await askOnce(env, target, {
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        body: body === undefined || body === null ? undefined : String(body),
        redirects: 'answer',
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: waitMs,
        signal,
      })
      const { date, 'content-type': type = '' } = answer.headers
      const at = Date.parse(date ?? '')
      skew = Number.isNaN(at) ? null : Math.round((at - Date.now()) / 1000)
      // The status of a Response is limited; any other is as useless as this one.
      const status = answer.status >= 200 && answer.status <= 599 ? answer.status : 502
      const isEmpty = status === 204 || status === 205 || status === 304
      return new Response(isEmpty ? null : new Uint8Array(answer.bytes), {
        status,
        headers: { 'content-type': type },
      })
    },
  }
}
