/** The client of an OpenID provider: the code flow with PKCE, and the address that logs out there. */
import { Fault } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import {
  joinClaims,
  type ProviderClaims,
  isClientUnknown,
  type ProviderFailure,
  describeProviderFailure,
  isAskable,
} from './rules/provider-failure.ts'
import { readFile } from 'node:fs/promises'
import type * as OpenId from 'openid-client'
import type { Environment } from '#kit/host/shell.ts'
import { askOnce, type DocumentAnswer } from '../json-client.ts'
import { parseHttpTarget } from '../rules/image-location.ts'
import { codedError, MISDIRECTED } from '../rules/network-failure.ts'

/** A login on its way to the provider and back; what is secret is made of one key by each server alike. */
export interface LoginFlow {
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** PKCE's secret. */
  readonly verifier: string
}

export type Provider = ReturnType<typeof createProvider>

/** Answers that are checked at the same time. */
const MAX_FINISHING = 32

/**
 * Nothing is asked before the first call, and nothing is kept for long: keys are fetched for each
 * login, so that new ones count at once.
 */
export function createProvider(options: ProviderOptions) {
  const discovery = createDiscovery(options)
  let finishing = 0
  /** Why the provider takes no login from this server; null: it took the last one. */
  let unknown: ProviderFailure | null = null

  return {
    check: discovery.check,
    /** Why nobody can log in with it; null: it is of use, or was not asked yet. */
    failure: (): ProviderFailure | null => discovery.failure() ?? unknown,
    /** Nothing is asked any more by itself, and nobody hears of it. */
    close: discovery.close,
    /** Resolves to the address at the provider where the login begins. `isAgain`: it asks who that is, also whom it knows. */
    async begin(flow: LoginFlow, isAgain: boolean): Promise<Result<string, ProviderFailure>> {
      try {
        const { library, configuration } = await discovery.open()
        const url = library.buildAuthorizationUrl(configuration, {
          redirect_uri: flow.redirectUri,
          scope: options.scope,
          state: flow.state,
          nonce: flow.nonce,
          code_challenge: await library.calculatePKCECodeChallenge(flow.verifier),
          code_challenge_method: 'S256',
          ...(isAgain && { prompt: 'login' }),
        })
        return accept(url.href)
      } catch (thrown) {
        return refuse(discovery.describe(thrown))
      }
    },
    /**
     * Resolves to what the provider says of the person who comes back with `search`. `isEnough`: whether
     * the ID token says all that is needed; else the provider is asked for the rest.
     */
    async finish(
      flow: LoginFlow,
      search: string,
      isEnough: (claims: ProviderClaims) => boolean,
    ): Promise<Result<ProviderClaims, ProviderFailure>> {
      if (finishing >= MAX_FINISHING)
        return refuse({ why: 'away', detail: 'too many logins at once' })
      finishing += 1
      try {
        const claims = await readClaims(await discovery.open(), flow, search, isEnough)
        unknown = null
        return accept(claims)
      } catch (thrown) {
        const failure = discovery.describe(thrown)
        if (isClientUnknown(thrown)) unknown = failure
        return refuse(failure)
      } finally {
        finishing -= 1
      }
    },
    /** The address that ends the session at the provider and leads back; null: it offers none. */
    findLogout(returnTo: string): string | null {
      const known = discovery.recall()
      if (known?.metadata.end_session_endpoint === undefined) return null
      const { library, configuration } = known
      const url = library.buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo })
      return url.href
    },
  }
}

type OpenedLibrary = Awaited<ReturnType<ReturnType<typeof createDiscovery>['open']>>

async function readClaims(
  { library, configuration }: OpenedLibrary,
  { redirectUri, state, nonce, verifier }: LoginFlow,
  search: string,
  isEnough: (claims: ProviderClaims) => boolean,
): Promise<ProviderClaims> {
  const tokens = await library.authorizationCodeGrant(
    configuration,
    new URL(`${redirectUri}${search}`),
    {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    },
  )
  const claims = tokens.claims()
  if (claims === undefined) throw new Fault('upstream-failed', 'it sends no ID token')
  const { userinfo_endpoint: more } = configuration.serverMetadata()
  if (more === undefined || isEnough(claims)) return claims
  const found = await library.fetchUserInfo(configuration, tokens.access_token, claims.sub)
  return joinClaims(claims, found)
}

// What an OpenID provider says of itself: fetched for each login, and followed while it is of no use.

interface ProviderOptions {
  readonly issuer: string
  readonly clientId: string
  /** Empty: the client has none. */
  readonly clientSecret: string
  /** A file whose first line is the secret; empty: none. */
  readonly clientSecretFile: string
  /** What is asked for, with blanks between: `openid profile`. */
  readonly scope: string
  readonly env: Environment
  /** The listener is called when the provider begins or ceases to be of use; null: it is of use. */
  onChange(failure: ProviderFailure | null): void
  /** Milliseconds for one request; absent: 10 s. */
  readonly waitMs?: number
  /** Milliseconds for which what was discovered counts, so that many who log in at once ask once; absent: 10 s. */
  readonly freshMs?: number
}

const FRESH_MS = 10_000
/** How long a provider that is of no use is left alone, in milliseconds. */
const PAUSE_MS = 60_000
/** How far the clocks of the two may be apart, in seconds. */
const CLOCK_TOLERANCE = 60
interface Discovered {
  readonly library: typeof OpenId
  readonly metadata: OpenId.ServerMetadata
  readonly secret: string
}

function createDiscovery(options: ProviderOptions) {
  const exchange = createExchange(options)
  const { freshMs = FRESH_MS } = options
  let last: { readonly at: number; readonly found: Promise<Discovered> } | null = null
  let known: Discovered | null = null
  let failure: ProviderFailure | null | undefined
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const describe = (thrown: unknown) => describeProviderFailure(thrown, exchange.skew())

  function settle(next: ProviderFailure | null): void {
    if (isClosed) return
    const isNews = next?.detail !== failure?.detail || failure === undefined
    failure = next
    if (isNews) options.onChange(next)
    clearTimeout(timer)
    if (next !== null) timer = setTimeout(() => void check(), PAUSE_MS).unref()
  }

  async function discover(): Promise<Discovered> {
    if (last === null || performance.now() - last.at >= freshMs) {
      const found = findMetadata(options, exchange)
      last = { at: performance.now(), found }
      found.then(
        (each) => {
          known = each
          settle(null)
        },
        (thrown: unknown) => settle(describe(thrown)),
      )
    }
    return await last.found
  }

  async function check(): Promise<void> {
    // Why it failed is known by now.
    await discover().catch(() => {})
  }

  const apply = (discovered: Discovered) => configure(discovered, options, exchange)

  return {
    check,
    describe,
    /** Resolves to what openid-client needs, anew each time: the library keeps keys with it. */
    open: async () => apply(await discover()),
    /** The same as it was last known; null: the provider never answered. */
    recall: () => (known === null ? null : apply(known)),
    failure: (): ProviderFailure | null => failure ?? null,
    close(): void {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

type ProviderExchange = ReturnType<typeof createExchange>

async function findMetadata(
  options: ProviderOptions,
  exchange: ProviderExchange,
): Promise<Discovered> {
  if (options.clientId === '') throw new Fault('input-invalid', 'oidc.client_id is not set')
  const library = await import('openid-client')
  const secret = await readSecret(options)
  const issuer = new URL(options.issuer)
  exchange.permit([`${options.issuer.replace(/\/$/, '')}/.well-known/openid-configuration`])
  const found = await library.discovery(issuer, options.clientId, undefined, undefined, {
    algorithm: 'oidc',
    [library.customFetch]: exchange.fetch,
    // What may be asked without TLS is decided by the exchange.
    execute: [library.allowInsecureRequests],
  })
  const metadata = found.serverMetadata()
  exchange.permit(listEndpoints(metadata))
  return { library, metadata, secret }
}

/** What this server asks, and where it sends browsers. */
function listEndpoints(metadata: OpenId.ServerMetadata): readonly string[] {
  const { authorization_endpoint: begin, token_endpoint: token, jwks_uri: keys } = metadata
  if (begin === undefined || token === undefined || keys === undefined) {
    throw new Fault('upstream-failed', 'its discovery document lacks an address')
  }
  const more = [metadata.userinfo_endpoint, metadata.end_session_endpoint]
  return [begin, token, keys, ...more.filter((each) => each !== undefined)]
}

async function readSecret({
  clientSecret,
  clientSecretFile: path,
}: ProviderOptions): Promise<string> {
  if (path === '') return clientSecret
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Fault('input-missing', `${path} (oidc.client_secret_file) cannot be read`, { cause })
  })
  return text.split('\n')[0]?.trim() ?? ''
}

function configure(
  { library, metadata, secret }: Discovered,
  { clientId }: ProviderOptions,
  exchange: ProviderExchange,
) {
  // Not all of them say by which algorithms they sign what the userinfo address answers.
  const algorithms = metadata.id_token_signing_alg_values_supported ?? ['RS256']
  const signs = algorithms.filter((each) => each !== 'none')
  const configuration = new library.Configuration(
    { userinfo_signing_alg_values_supported: signs, ...metadata },
    clientId,
    { [library.clockTolerance]: CLOCK_TOLERANCE },
    chooseProof(library, metadata, secret),
  )
  configuration[library.customFetch] = exchange.fetch
  library.allowInsecureRequests(configuration)
  // A token over TLS needs no signature by the specification; it is checked anyway.
  library.enableNonRepudiationChecks(configuration)
  return { library, metadata, configuration }
}

/** How we show the provider that it is us: the way that clients have unless registered otherwise, if it knows that. */
function chooseProof(library: typeof OpenId, metadata: OpenId.ServerMetadata, secret: string) {
  if (secret === '') return library.None()
  const { token_endpoint_auth_methods_supported: ways = ['client_secret_basic'] } = metadata
  return ways.includes('client_secret_basic')
    ? library.ClientSecretBasic(secret)
    : library.ClientSecretPost(secret)
}

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
function createExchange({ issuer, env, waitMs = PROVIDER_WAIT_MS }: ProviderExchangeOptions) {
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
        throw codedError(MISDIRECTED, 'it redirects to an address outside the provider')
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
