/** Enters a registry: over TLS or in plain, with credentials where it asks for them. */
import type { Environment } from '#kit/host/shell.ts'
import {
  createHttpClient,
  type HttpClient,
  type HttpAnswer,
  type HttpRequest,
} from '../http-client.ts'
import { describeFailure, NO_TLS } from '../rules/network-failure.ts'
import {
  locateRegistry,
  decideSchemes,
  type OrasRef,
  loginsOf,
  namesOfRegistry,
} from './rules/oras.ts'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type Credentials,
  findCredentials,
  findHelper,
  parseHelperAnswer,
  parseChallenges,
  type Challenge,
  renderBasic,
} from './rules/docker-config.ts'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { askDocument, type DocumentRequest } from '../json-client.ts'
import type { HttpTarget } from '../rules/image-location.ts'

export interface RegistryOptions {
  /** Names proxies, FLASHER_CA_FILE, FLASHER_REGISTRY_HTTP and where credentials are. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** The longest wait for a next byte, in milliseconds. */
  readonly stallMs: number
  /** Milliseconds before the first repeat. */
  readonly retryMs: number
  /** Passwords stay here, also where there are some; absent: the registry gets its own. */
  readonly isAnonymous?: boolean
}

export interface RegistryEntrance {
  /** The origin, without a slash at its end. */
  readonly base: string
  readonly repository: string
  /** Lets itself in, again where a token has expired. */
  readonly access: ReturnType<typeof createRegistryAccess>
  readonly bounds: typeof REGISTRY_BOUNDS & Pick<RegistryOptions, 'retryMs' | 'signal'>
}

/**
 * Creates what enters the repository of a reference. `first` is the first request; where it fails
 * as the registry of this machine speaks plain http, it is made once more in plain.
 */
export function createEntrances(options: RegistryOptions) {
  const { env, signal, stallMs } = options
  const client = createHttpClient({ env, signal, stallMs })
  return {
    async enter<First>(
      ref: OrasRef,
      actions: RegistryActions,
      first: (entrance: RegistryEntrance) => Promise<First>,
    ): Promise<RegistryEntrance & { readonly first: First }> {
      const place = locateRegistry(ref)
      const schemes = decideSchemes(place.host, env['FLASHER_REGISTRY_HTTP'] ?? '')
      for (const [at, scheme] of schemes.entries()) {
        const base = `${scheme}://${place.host}`
        const entrance = createEntrance(options, client, { ...place, actions }, base)
        try {
          return { ...entrance, first: await first(entrance) }
        } catch (thrown) {
          if (at === schemes.length - 1 || !isTlsUnknown(thrown)) throw thrown
        }
      }
      throw new Error('there is always a scheme')
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  }
}

function createEntrance(
  { env, signal, retryMs, isAnonymous = false }: RegistryOptions,
  client: HttpClient,
  {
    host,
    repository,
    actions,
  }: ReturnType<typeof locateRegistry> & { readonly actions: RegistryActions },
  base: string,
): RegistryEntrance {
  const bounds = { ...REGISTRY_BOUNDS, retryMs, signal }
  const { origin } = new URL(base)
  const credentials = async () => (isAnonymous ? null : await readCredentials(env, host))
  const access = createRegistryAccess({ bounds, client, origin, repository, actions, credentials })
  return { base, repository, access, bounds }
}

/** Tells whether a request ended as a server that speaks plain http ends a TLS greeting. */
export function isTlsUnknown(thrown: unknown): boolean {
  const failure = describeFailure(thrown)
  return failure !== null && (NO_TLS.has(failure.code) || failure.isHangUp)
}

export const REGISTRY_LOGIN =
  'Set FLASHER_REGISTRY_HOST, FLASHER_REGISTRY_USER and FLASHER_REGISTRY_PASSWORD, or log in with docker or podman; without a login, private and missing images look the same.'

export const PLAIN_REGISTRY =
  'If this registry speaks plain http, name it in FLASHER_REGISTRY_HTTP.'

/** What helps where a registry answers a read with such a status. */
export const READ_HINTS: Readonly<Record<number, string>> = {
  401: REGISTRY_LOGIN,
  403: REGISTRY_LOGIN,
  404: 'The registry has no such image: correct the address, or push the image again.',
  429: 'The registry limits requests. Wait, log in, or raise its limit.',
}

/** Finds the user and password for a registry: in variables, then in the files of Docker and Podman. */
const MAX_BYTES = 1024 * 1024
const HELPER_MS = 10_000

/**
 * FLASHER_REGISTRY_USER and _PASSWORD for the host named by FLASHER_REGISTRY_HOST and for no other;
 * then the configuration in DOCKER_AUTH_CONFIG, in the folder DOCKER_CONFIG, in `~/.docker`, and
 * Podman's; each may name a program that keeps them (`docker-credential-…`).
 */
async function readCredentials(env: Environment, host: string): Promise<Credentials | null> {
  const own = readOwn(env, host)
  if (own !== null) return own
  const given = await findIn(env['DOCKER_AUTH_CONFIG'] ?? '', env, host)
  if (given !== null) return given
  for (const path of listAuthFiles(env)) {
    const found = await findIn(await readConfig(path), env, host)
    if (found !== null) return found
  }
  return null
}

function readOwn(env: Environment, host: string): Credentials | null {
  const own = env['FLASHER_REGISTRY_HOST']?.trim().toLowerCase() ?? ''
  const user = env['FLASHER_REGISTRY_USER'] ?? ''
  const isOwn = user !== '' && namesOfRegistry(host).includes(own)
  return isOwn ? { user, password: env['FLASHER_REGISTRY_PASSWORD'] ?? '' } : null
}

function listAuthFiles(env: Environment): readonly string[] {
  const {
    HOME: home,
    DOCKER_CONFIG: docker,
    XDG_RUNTIME_DIR: runtime,
    REGISTRY_AUTH_FILE: named,
  } = env
  const dockers = docker || below(home, '.docker')
  return [
    below(dockers, 'config.json'),
    named ?? '',
    below(runtime, 'containers/auth.json'),
    below(home, '.config/containers/auth.json'),
  ].filter(Boolean)
}

const below = (folder: string | undefined, name: string) => (folder ? join(folder, name) : '')

async function findIn(text: string, env: Environment, host: string): Promise<Credentials | null> {
  if (text === '') return null
  const found = findCredentials(text, host)
  if (found !== null) return found
  const helper = findHelper(text, host)
  return helper === null ? null : askHelper(helper, env, host)
}

/** Best effort, as all of this: one that is not installed or knows nothing means no password. */
async function askHelper(helper: string, env: Environment, host: string) {
  try {
    const { createShell } = await import('#kit/host/shell.ts')
    const shell = createShell({ env })
    for (const input of loginsOf(host)) {
      const asked = { input, timeout: HELPER_MS }
      const answer = await shell.run([`docker-credential-${helper}`, 'get'], asked)
      const found = answer.exitCode === 0 ? parseHelperAnswer(answer.stdout) : null
      if (found !== null) return found
    }
    return null
  } catch {
    return null
  }
}

async function readConfig(path: string): Promise<string> {
  try {
    await using handle = await open(path, 'r')
    const { size } = await handle.stat()
    return size > MAX_BYTES ? '' : await handle.readFile('utf8')
  } catch {
    return '' // Best effort: most images are public, and a refusal says where passwords are looked for.
  }
}

// An HTTP client that authenticates at one registry: with a token, a password, or anonymously.

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

type RegistryActions = 'pull' | 'pull,push'

const REGISTRY_BOUNDS = {
  maxBytes: 10 * 1024 * 1024,
  timeoutMs: 30_000,
  retries: 2,
} as const

/** Each 401, and a 403 to a token that may have expired, is answered with one fresh try. */
function createRegistryAccess(options: AccessOptions) {
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
