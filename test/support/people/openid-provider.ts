/** A real OpenID provider (oidc-provider) on this host, with people, keys that change, and faults at each of its addresses. */
import { createPrivateKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Provider } from 'oidc-provider'

export const CLIENT = { id: 'flasher', secret: 'a secret of the client that is long enough' }

type Claims = Record<string, unknown>

/** What goes wrong at one of its addresses, by the end of the path. */
export type ProviderFault = 'away' | 'hangs' | 'huge' | 'redirects'

interface ProviderOptions {
  /** Where the browser comes back to after a login, and after a logout. */
  readonly origins: readonly string[]
  /** The name under which it is asked; `localhost` is another site than 127.0.0.1. */
  readonly host?: string
}

/** Starts it. `accounts` has the claims of each person by the name that they type. */
export async function startOpenIdProvider({ origins, host = '127.0.0.1' }: ProviderOptions) {
  const accounts = new Map<string, Claims>()
  const faults = new Map<string, ProviderFault>()
  const asked: string[] = []
  let listener = refuseAll
  let change: ((claims: Claims) => Claims) | null = null
  let changeDocument: ((document: Claims) => Claims) | null = null
  let key = makeKey()
  let signing: Jwk | null = null
  let secret = CLIENT.secret
  let signsUserInfo = false

  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://localhost').pathname
    asked.push(path)
    if (path === '/favicon.ico') return void response.writeHead(204).end()
    const fault = [...faults].find(([end]) => path.endsWith(end))?.[1]
    if (fault === 'hangs') return
    if (fault === 'away') return void request.destroy()
    if (fault === 'huge') return sendHuge(response)
    if (fault === 'redirects') return void response.writeHead(302, { location: '/elsewhere' }).end()
    if (path.endsWith('/token'))
      capture(response, (text) => alterToken(text, change, signing ?? key))
    if (path.endsWith('/openid-configuration'))
      capture(response, (text) => alterDocument(text, changeDocument))
    listener(request, response)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const issuer = `http://${host}:${port}`

  function build() {
    const provider = new Provider(issuer, {
      jwks: { keys: [key] },
      cookies: { keys: ['a key of cookies'] },
      clients: [
        {
          client_id: CLIENT.id,
          client_secret: secret,
          ...(signsUserInfo && { userinfo_signed_response_alg: 'RS256' }),
          redirect_uris: origins.map((origin) => `${origin}/ui/login/openid/callback`),
          post_logout_redirect_uris: origins.map((origin) => `${origin}/ui/login`),
        },
      ],
      claims: { openid: ['sub', 'groups', 'preferred_username', 'email', 'email_verified'] },
      conformIdTokenClaims: false,
      features: {
        devInteractions: { enabled: false },
        jwtUserinfo: { enabled: true },
        rpInitiatedLogout: { enabled: true, logoutSource: renderLogout },
      },
      ttl: { Session: 3600, Grant: 3600, Interaction: 600, AccessToken: 60, IdToken: 60 },
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, ...accounts.get(id) }),
      }),
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    })
    const inner = provider.callback()
    listener = (request, response) => {
      if (request.url?.startsWith('/interaction/') !== true) return inner(request, response)
      void interact(provider, request, response)
    }
  }
  build()

  return {
    issuer,
    accounts,
    faults,
    /** The paths that were asked for. */
    asked,
    /** Signs with another key from now on, and publishes no other. */
    rotateKeys() {
      key = makeKey()
      build()
    },
    /** The client has another secret from now on. */
    replaceSecret(next: string) {
      secret = next
      build()
    },
    /** Signs with a key that nobody can look up. */
    signWithOther() {
      change = (claims) => claims
      signing = makeKey()
    },
    /** Signs what its userinfo address answers from now on. */
    signUserInfo() {
      signsUserInfo = true
      build()
    },
    /** Changes what ID tokens say, signed by the provider's key. */
    alterClaims(by: ((claims: Claims) => Claims) | null) {
      change = by
    },
    alterDocument(by: ((document: Claims) => Claims) | null) {
      changeDocument = by
    },
    settings: {
      FLASHER_OIDC_ISSUER: issuer,
      FLASHER_OIDC_CLIENT_ID: CLIENT.id,
      FLASHER_OIDC_CLIENT_SECRET: CLIENT.secret,
      FLASHER_OIDC_NAME: 'Example',
      FLASHER_OIDC_LOOK: 'guests',
      FLASHER_OIDC_OPERATE: 'lab',
      FLASHER_OIDC_ADMINISTRATE: 'admins',
      FLASHER_OIDC_CONTACT: 'it@example.org',
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

export type OpenIdProvider = Awaited<ReturnType<typeof startOpenIdProvider>>

const refuseAll = (_: IncomingMessage, response: ServerResponse): void => void response.end()

/** The page where people say who they are; nobody has a password. */
async function interact(provider: Provider, request: IncomingMessage, response: ServerResponse) {
  const { uid, params } = await provider.interactionDetails(request, response)
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'text/html' })
    response.end(`<!doctype html><html lang="en"><title>Example</title><form method="post" action="/interaction/${uid}">
      <label>Account <input name="account" /></label><button>Sign in</button></form></html>`)
    return
  }
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(Buffer.from(chunk))
  const form = new URLSearchParams(Buffer.concat(chunks).toString('utf8'))
  const accountId = form.get('account') ?? ''
  if (accountId === '') {
    const error = { error: 'access_denied', error_description: 'the person went away' }
    await provider.interactionFinished(request, response, error, { mergeWithLastSubmission: false })
    return
  }
  const grant = new provider.Grant({ accountId, clientId: String(params['client_id']) })
  grant.addOIDCScope('openid profile email')
  const grantId = await grant.save()
  const result = { login: { accountId }, consent: { grantId } }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false })
}

type Jwk = Readonly<Record<string, unknown>>

/** The page where somebody confirms that the session there ends; its own loads a font from elsewhere. */
function renderLogout(context: { body: string }, form: string): void {
  context.body = `<!doctype html><html lang="en"><title>Example</title>${form}
    <button form="op.logoutForm" name="logout" value="yes">Yes, log out</button></html>`
}

function makeKey(): Jwk {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' }
}

/** Answers with 50 MB, as fast as they are read. */
function sendHuge(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  const piece = Buffer.alloc(1_000_000, ' ')
  let left = 50
  const send = () => {
    left -= 1
    if (left < 0) response.end()
    else if (response.write(piece)) setImmediate(send)
    else response.once('drain', send)
  }
  send()
}

/** Puts what `alter` makes of the body in its place. */
function capture(response: ServerResponse, alter: (text: string) => string): void {
  const { end } = response
  Object.assign(response, {
    end(body: unknown) {
      const text = alter(Buffer.isBuffer(body) ? body.toString('utf8') : String(body))
      response.setHeader('content-length', Buffer.byteLength(text))
      return end.call(response, text, 'utf8')
    },
  })
}

function alterDocument(text: string, by: ((document: Claims) => Claims) | null): string {
  return by === null ? text : JSON.stringify(by(JSON.parse(text)))
}

function alterToken(text: string, by: ((claims: Claims) => Claims) | null, key: Jwk): string {
  const answer = JSON.parse(text)
  if (by === null || typeof answer.id_token !== 'string') return text
  const [, body = ''] = answer.id_token.split('.')
  const head = Buffer.from(JSON.stringify({ alg: 'RS256', kid: key['kid'] })).toString('base64url')
  const claims = by(JSON.parse(Buffer.from(body, 'base64url').toString('utf8')))
  const changed = `${head}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
  const privateKey = createPrivateKey({ key, format: 'jwk' })
  const signature = sign('sha256', Buffer.from(changed), privateKey).toString('base64url')
  return JSON.stringify({ ...answer, id_token: `${changed}.${signature}` })
}
