/** What an OpenID provider says of itself: fetched for each login, and followed while it is of no use. */
import { readFile } from 'node:fs/promises'
import type * as OpenId from 'openid-client'
import { Fault } from '#kit/foundation/fault.ts'
import type { Environment } from '#kit/host/shell.ts'
import { createExchange } from './provider-exchange.ts'
import { describeProviderFailure, type ProviderFailure } from './rules/provider-failure.ts'

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

export function createDiscovery(options: ProviderOptions) {
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
