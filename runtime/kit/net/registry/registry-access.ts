/** An HTTP client that authenticates at one registry: with a token, a password, or anonymously. */
import { z } from 'zod'
import { parseChallenges, type Challenge } from './rules/challenge.ts'
import { renderBasic, type Credentials } from './rules/docker-config.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { HttpAnswer, HttpClient, HttpRequest } from '../http-client.ts'
import { askDocument, type DocumentRequest } from '../json-client.ts'
import type { HttpTarget } from '../rules/image-location.ts'

interface AccessOptions {
  readonly client: HttpClient
  readonly bounds: typeof REGISTRY_BOUNDS & Pick<DocumentRequest, 'retryMs' | 'signal'>
  /** The origin of the registry: secrets go there, to its token server, and nowhere else. */
  readonly origin: string
  readonly repository: string
  readonly actions: RegistryActions
  /** Read at the first request that requires them. */
  credentials(): Promise<Credentials | null>
}

export type RegistryActions = 'pull' | 'pull,push'

export const REGISTRY_BOUNDS = {
  maxBytes: 10 * 1024 * 1024,
  timeoutMs: 30_000,
  retries: 2,
} as const

/** Each 401, and a 403 to a token that may have expired, is answered with one fresh try. */
export function createRegistryAccess(options: AccessOptions) {
  const { origin, client } = options
  let authorization: string | null = null
  let challenges: readonly Challenge[] = []
  let renewal: Promise<string | null> | null = null

  const isOurs = ({ url }: HttpTarget) => URL.parse(url)?.origin === origin

  async function answerChallenge(): Promise<string | null> {
    const bearer = challenges.find(({ scheme }) => scheme === 'bearer')
    if (bearer !== undefined) return fetchToken(options, bearer)
    const basic = challenges.some(({ scheme }) => scheme === 'basic')
    const credentials = basic ? await options.credentials() : null
    return credentials === null || credentials.user === '' ? null : renderBasic(credentials)
  }

  /** Several requests may be refused at once: one of them asks for all. */
  async function renew(used: string | null): Promise<string | null> {
    if (authorization !== used) return authorization
    renewal ??= answerChallenge().finally(() => {
      renewal = null
    })
    const fresh = await renewal
    authorization = fresh ?? authorization
    return fresh
  }

  async function fetch(target: HttpTarget, request: HttpRequest): Promise<HttpAnswer> {
    if (!isOurs(target)) return client.fetch({ url: target.url, authorization: null }, request)
    const used = authorization
    const answer = await client.fetch({ url: target.url, authorization: used }, request)
    if (!isRefused(answer.status) || !isOurs(answer.target)) return answer
    const asked = parseChallenges(answer.headers['www-authenticate'] ?? '')
    if (asked.length > 0) challenges = asked
    const fresh = await renew(used)
    if (fresh === null || fresh === used) return answer
    answer.drop()
    return client.fetch({ url: target.url, authorization: fresh }, request)
  }

  return {
    fetch,
    /** The value of an `Authorization` header; null: none was asked for so far. */
    get authorization() {
      return authorization
    },
  }
}

const isRefused = (status: number) => status === 401 || status === 403

/** Bounded, and nothing in it can end the header that it is put into. */
const Token = z.string().regex(/^[\x21-\x7e]{1,65536}$/)
const Tokens = z.union([
  z.object({ token: Token }).transform(({ token }) => token),
  z.object({ access_token: Token }).transform(({ access_token }) => access_token),
])

/** Null where the token server gives none: then the registry's own refusal is reported. */
async function fetchToken(options: AccessOptions, { params }: Challenge): Promise<string | null> {
  const realm = realmOf(params.get('realm'), options.origin)
  if (realm === null) return null
  const service = params.get('service')
  const asked = new URLSearchParams(service === undefined ? {} : { service })
  asked.set('scope', `repository:${options.repository}:${options.actions}`)
  const credentials = await options.credentials()
  const { status, bytes } = await askForToken(options, realm, asked, credentials)
  const token = status === 200 ? Tokens.safeParse(parseJson(bytes.toString('utf8'))) : null
  return token?.success === true ? `Bearer ${token.data}` : null
}

/** An identity token is exchanged as OAuth 2 has it, anything else as the distribution specification has it. */
function askForToken(
  { client, bounds }: AccessOptions,
  realm: URL,
  asked: URLSearchParams,
  credentials: Credentials | null,
) {
  const headers = { accept: 'application/json' }
  const { identityToken } = credentials ?? {}
  if (identityToken === undefined) {
    for (const [name, value] of asked) realm.searchParams.set(name, value)
    const target = { url: realm.href, authorization: credentials && renderBasic(credentials) }
    return askDocument(client, target, { ...bounds, headers })
  }
  const grant = { grant_type: 'refresh_token', refresh_token: identityToken, client_id: 'flasher' }
  return askDocument(
    client,
    { url: realm.href, authorization: null },
    {
      ...bounds,
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams([...Object.entries(grant), ...asked]).toString(),
      // A redirect would carry the token to another host.
      redirects: 'answer',
    },
  )
}

/** A registry that is spoken to over TLS cannot send a password elsewhere in the clear. */
function realmOf(text: string | undefined, origin: string): URL | null {
  const realm = URL.parse(text ?? '')
  if (realm === null) return null
  const isPlain = realm.protocol === 'http:' && origin.startsWith('http:')
  if (realm.protocol !== 'https:' && !isPlain) return null
  realm.username = ''
  realm.password = ''
  realm.hash = ''
  return realm
}
