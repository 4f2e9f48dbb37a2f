/** Asks an OpenID provider over HTTP: only addresses that it named itself, each within a time and a size. */
import type { Environment } from '#kit/host/shell.ts'
import { askOnce, type DocumentAnswer } from '../json-client.ts'
import { parseHttpTarget } from '../rules/image-location.ts'
import { codedError, MISDIRECTED } from '../rules/network-failure.ts'
import { isAskable } from './rules/provider-address.ts'

/** For one request, the answer included. */
const PROVIDER_WAIT_MS = 10_000
/** Keys, documents and ID tokens with hundreds of groups are well below it. */
const MAX_ANSWER_BYTES = 524_288

interface ProviderExchangeOptions {
  readonly issuer: string
  /** Names proxies and FLASHER_CA_FILE. */
  readonly env: Environment
  readonly waitMs?: number | undefined
}

interface ProviderRequest {
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly signal?: AbortSignal | undefined
}

/** It follows no redirect. */
export function createExchange({
  issuer,
  env,
  waitMs = PROVIDER_WAIT_MS,
}: ProviderExchangeOptions) {
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
    async fetch(
      address: string,
      { method, headers, body, signal }: ProviderRequest,
    ): Promise<Response> {
      const target = permitted.has(new URL(address).href) ? parseHttpTarget(address) : null
      if (target === null)
        throw codedError(MISDIRECTED, 'it leads to an address that it does not name')
      const answer = await askOnce(env, target, {
        method: method === 'POST' ? 'POST' : 'GET',
        headers,
        body: toText(body),
        redirects: 'answer',
        maxBytes: MAX_ANSWER_BYTES,
        timeoutMs: waitMs,
        signal,
      })
      const at = Date.parse(answer.headers.date ?? '')
      skew = Number.isNaN(at) ? null : Math.round((at - Date.now()) / 1000)
      return toResponse(answer)
    },
  }
}

/** What openid-client sends is a form or nothing. */
const toText = (body: unknown): string | undefined =>
  body === undefined || body === null ? undefined : String(body)

/** Statuses that a Response may not have, and that come without a body, are of no use either way. */
function toResponse({ status, headers, bytes }: DocumentAnswer): Response {
  const isUsual = status >= 200 && status <= 599 && ![204, 205, 304].includes(status)
  return new Response(new Uint8Array(bytes), {
    status: isUsual ? status : 502,
    headers: { 'content-type': headers['content-type'] ?? '' },
  })
}
