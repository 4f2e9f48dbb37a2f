/** The client of an OpenID provider: the code flow with PKCE, and the address that logs out there. */
import { Fault } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { createDiscovery, type ProviderOptions } from './provider-discovery.ts'
import { joinClaims, type ProviderClaims } from './rules/provider-claims.ts'
import { isClientUnknown, type ProviderFailure } from './rules/provider-failure.ts'

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
        return refuse({ why: 'away', detail: 'too many log in at once' })
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
