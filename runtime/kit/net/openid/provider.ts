/** The client of an OpenID provider: discovery, the code flow with PKCE, and the address that logs out there. */
import { readFile } from 'node:fs/promises'
import type * as OpenId from 'openid-client'
import { Fault } from '../../foundation/fault.ts'
import { accept, refuse, type Result } from '../../foundation/result.ts'
import type { Environment } from '../../host/shell.ts'
import { createExchange } from './provider-exchange.ts'
import { describeProviderFailure, type ProviderFailure } from './rules/provider-failure.ts'

/** A login on its way to the provider and back; what is secret is made of one key by each server alike. */
export interface LoginFlow {
  /** Where the provider sends the browser back to. */
  readonly redirectUri: string
  readonly state: string
  readonly nonce: string
  /** PKCE's secret. */
  readonly verifier: string
}

/** What the provider says of a person; `iss` and `sub` are texts. */
export type ProviderClaims = Readonly<Record<string, unknown>> & {
  readonly iss: string
  readonly sub: string
}

export interface ProviderOptions {
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
}

export type Provider = ReturnType<typeof createProvider>

/** How long what was discovered counts, in milliseconds: many who log in at once ask once. */
const FRESH_MS = 10_000
/** How long a provider that is of no use is left alone, in milliseconds. */
const PAUSE_MS = 60_000
/** How far the clocks of the two may be apart, in seconds. */
const CLOCK_TOLERANCE = 60
/** Answers that are checked at the same time. */
const MAX_FINISHING = 32

interface Discovered {
  readonly library: typeof OpenId
  readonly metadata: OpenId.ServerMetadata
  readonly secret: string
}

/**
 * Creates the client. Nothing is asked before the first call, and nothing that is asked is kept for
 * long: keys are fetched for each login, so that new ones count at once.
 */
export function createProvider(options: ProviderOptions) {
  const exchange = createExchange(options)
  let last: { readonly at: number; readonly found: Promise<Discovered> } | null = null
  let known: Discovered | null = null
  let failure: ProviderFailure | null | undefined
  let timer: NodeJS.Timeout | undefined
  let finishing = 0
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
    if (last === null || performance.now() - last.at >= FRESH_MS) {
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

  /** Anew for each login: the library keeps keys with it. */
  const open = async () => configure(await discover(), options, exchange)

  return {
    /** Resolves once it is known whether the provider is of use. */
    check,
    /** Why nobody can log in with it; null: it is of use, or was not asked yet. */
    failure: (): ProviderFailure | null => failure ?? null,
    /** Resolves to the address at the provider where the login begins. `isAgain`: it asks who that is, also whom it knows. */
    async begin(flow: LoginFlow, isAgain: boolean): Promise<Result<string, ProviderFailure>> {
      try {
        const { library, configuration } = await open()
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
        return refuse(describe(thrown))
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
        return refuse({ why: 'away', detail: 'too many log in at once' })
      finishing += 1
      try {
        return accept(await readClaims(await open(), flow, search, isEnough))
      } catch (thrown) {
        return refuse(describe(thrown))
      } finally {
        finishing -= 1
      }
    },
    /** The address that ends the session at the provider and leads back; null: it offers none. */
    findLogout(returnTo: string): string | null {
      if (known === null || known.metadata.end_session_endpoint === undefined) return null
      const { library, configuration } = configure(known, options, exchange)
      const url = library.buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo })
      return url.href
    },
    /** Nothing is asked any more by itself, and nobody hears of it. */
    close(): void {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

type Exchange = ReturnType<typeof createExchange>

async function findMetadata(options: ProviderOptions, exchange: Exchange): Promise<Discovered> {
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
  exchange: Exchange,
) {
  const configuration = new library.Configuration(
    metadata,
    clientId,
    { [library.clockTolerance]: CLOCK_TOLERANCE },
    chooseProof(library, metadata, secret),
  )
  configuration[library.customFetch] = exchange.fetch
  library.allowInsecureRequests(configuration)
  // A token over TLS needs no signature by the specification; it is checked all the same.
  library.enableNonRepudiationChecks(configuration)
  return { library, configuration }
}

/** How we show the provider that it is us: the way that clients have unless registered otherwise, if it knows that. */
function chooseProof(library: typeof OpenId, metadata: OpenId.ServerMetadata, secret: string) {
  if (secret === '') return library.None()
  const { token_endpoint_auth_methods_supported: ways = ['client_secret_basic'] } = metadata
  return ways.includes('client_secret_basic')
    ? library.ClientSecretBasic(secret)
    : library.ClientSecretPost(secret)
}

async function readClaims(
  { library, configuration }: ReturnType<typeof configure>,
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
  return { ...found, ...claims }
}
