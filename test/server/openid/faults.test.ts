/** Faults of a login with a provider: each is refused in words, logs nobody in, and leaves the server as it was. */
import { createServer } from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCurrentServer, type CurrentServer } from '#test/support/people/current-server.ts'
import {
  CLIENT,
  startOpenIdProvider,
  type OpenIdProvider,
  type ProviderFault,
} from '#test/support/people/openid-provider.ts'
import {
  createProviderBrowser,
  ORIGIN,
  type ProviderBrowser,
} from '#test/support/people/provider-browser.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'

const test = suite('faults of a login with a provider')

async function startBoth(more: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack()
  const provider = stack.use(await startOpenIdProvider({ origins: [ORIGIN] }))
  provider.accounts.set('anna', { preferred_username: 'anna', groups: ['admins'] })
  provider.accounts.set('bert', { preferred_username: 'bert', groups: ['admins'] })
  const server = stack.use(await createCurrentServer({ ...provider.settings, ...more }))
  return { provider, server, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

async function isRefused(answer: Response, status: number, words: string | RegExp) {
  const text = await answer.text()
  assert.is(answer.status, status, text)
  assert.match(text, words)
  const cookies = answer.headers.getSetCookie()
  assert.not(cookies.some((each) => each.startsWith('flasher-token')))
}

const fails = async (browser: ProviderBrowser, status: number, words: string | RegExp) =>
  await isRefused(await browser.logIn('anna'), status, words)

/** Seconds of the epoch. */
const now = () => Math.floor(Date.now() / 1000)

/** Whoever wants to log in without the provider can. */
const hasPassword = async (server: CurrentServer) =>
  assert.is((await server.logIn({ password: PASSWORD })).status, 303)

test('what an ID token says is checked, and signed by a key that the provider publishes', async () => {
  await using both = await startBoth()
  const { provider, server } = both
  const wrong: readonly (readonly [string, Record<string, unknown>, RegExp])[] = [
    ['issuer', { iss: 'https://evil.example' }, /of another login, client or issuer/],
    ['client', { aud: 'another' }, /of another login, client or issuer/],
    ['nonce', { nonce: 'of another login' }, /of another login, client or issuer/],
    ['end', { iat: now() - 7200, exp: now() - 3600 }, /not valid at this time/],
    ['beginning', { nbf: now() + 3600 }, /not valid at this time/],
  ]
  for (const [what, claims, words] of wrong) {
    provider.alterClaims((said) => ({ ...said, ...claims }))
    await fails(createProviderBrowser(provider, server), 502, words)
    assert.is(server.state.peopleStore.findByName('anna'), null, what)
  }
  provider.alterClaims((said) => ({ ...said, sub: undefined }))
  await fails(createProviderBrowser(provider, server), 502, 'could not be verified')
  // Clocks that are half a minute apart are usual.
  provider.alterClaims((said) => ({ ...said, iat: now() - 100, exp: now() - 40 }))
  assert.is((await createProviderBrowser(provider, server).logIn('anna')).status, 303)
})

test('keys that were replaced count at once, and those of before no more', async () => {
  await using both = await startBoth()
  const { provider, server } = both
  const logIn = async () => (await createProviderBrowser(provider, server).logIn('anna')).status
  assert.is(await logIn(), 303)
  provider.rotateKeys()
  assert.is(await logIn(), 303)
  provider.signWithOther()
  await fails(createProviderBrowser(provider, server), 502, 'a key that it does not publish')
})

test('an answer counts for the browser and the login that began it, once and for ten minutes', async () => {
  await using both = await startBoth()
  const { provider, server } = both
  const [anna, mallory] = [
    createProviderBrowser(provider, server),
    createProviderBrowser(provider, server),
  ]
  const unknown = /has expired, or was started in another browser/
  const back = await anna.visit(await anna.begin(), 'anna')
  // Somebody else's browser brings the answer, as a link that was sent to them.
  await isRefused(await mallory.comeBack(back), 400, unknown)
  // The code of another login in the answer to this one.
  const other = new URL(await mallory.visit(await mallory.begin(), 'bert'))
  const mixed = new URL(back)
  mixed.searchParams.set('code', other.searchParams.get('code') ?? '')
  const cookie = anna.cookies.get('flasher-openid') ?? ''
  await isRefused(await anna.comeBack(mixed.href), 400, 'has expired')
  // The answer of before the fault is void, too: its cookie is gone.
  await isRefused(await anna.comeBack(back), 400, unknown)
  // Kept by a thief with the answer, both are spent at the provider.
  const again = createProviderBrowser(provider, server)
  const address = await again.visit(await again.begin(), 'anna')
  const kept = again.cookies.get('flasher-openid') ?? ''
  assert.is((await again.comeBack(address)).status, 303)
  again.cookies.clear()
  again.cookies.set('flasher-openid', kept)
  await isRefused(await again.comeBack(address), 400, 'has expired')
  // A cookie that was changed, or is signed by nobody.
  for (const forged of [`${cookie}x`, cookie.replace(/\.[^.]*$/, '.'), 'x', '.']) {
    const thief = createProviderBrowser(provider, server)
    thief.cookies.set('flasher-openid', forged)
    await isRefused(await thief.comeBack(back), 400, unknown)
  }
})

test('another server with the same key goes on with a login', async () => {
  await using provider = await startOpenIdProvider({ origins: [ORIGIN] })
  provider.accounts.set('anna', { preferred_username: 'anna', groups: ['admins'] })
  const key = { FLASHER_SERVER_SESSION_SECRET: 'a key of sessions that servers share' }
  await using one = await createCurrentServer({ ...provider.settings, ...key })
  await using other = await createCurrentServer({ ...provider.settings, ...key })
  // The first begins it, the second takes the callback, the first finishes it.
  const browser = createProviderBrowser(provider, one, other)
  assert.is((await browser.logIn('anna')).status, 303)
  await using stranger = await createCurrentServer(provider.settings)
  await fails(
    createProviderBrowser(provider, one, stranger, stranger),
    400,
    'started in another browser',
  )
})

test('somebody who turns back at the provider learns that', async () => {
  await using both = await startBoth()
  const browser = createProviderBrowser(both.provider, both.server)
  const back = await browser.logIn('')
  await isRefused(
    back,
    403,
    /Example did not log you in: it says access_denied \(the person went away\)/,
  )
})

test('what a browser brings along is on no record: anybody can make up the words', async () => {
  await using both = await startBoth()
  const { provider, server } = both
  for (const [error, words] of [
    ['access_denied', 'it says access_denied'],
    ['made up', 'it refused the login'],
  ] as const) {
    const browser = createProviderBrowser(provider, server)
    const state = new URL(await browser.begin()).searchParams.get('state') ?? ''
    const said = { state, error, error_description: 'call @here', iss: provider.issuer }
    const search = new URLSearchParams(said)
    await isRefused(
      await browser.comeBack(`${ORIGIN}/ui/login/openid/callback?${search}`),
      403,
      /it says .*call @here/,
    )
    const [event] = await server.state.journal.list({ kind: 'auth.login.failed', limit: 1 })
    assert.is(event?.summary, `Failed login with Example: ${words}`)
  }
})

test('a secret that the provider does not know is no fault of the person', async () => {
  await using both = await startBoth({ FLASHER_OIDC_CLIENT_SECRET: 'wrong' })
  await fails(createProviderBrowser(both.provider, both.server), 502, 'it says invalid_client')
})

test('a discovery document of somebody else, without TLS or without an address is refused', async () => {
  const altered: readonly (readonly [(document: object) => object, RegExp])[] = [
    [(document) => ({ ...document, issuer: 'https://evil.example' }), /another issuer/],
    [(document) => ({ ...document, token_endpoint: 'http://192.0.2.1/token' }), /without TLS/],
    [(document) => ({ ...document, jwks_uri: 'http://flasher.test/keys' }), /without TLS/],
    [(document) => ({ ...document, userinfo_endpoint: 'file:///etc/passwd' }), /without TLS/],
    [(document) => ({ ...document, token_endpoint: undefined }), /lacks an address/],
  ]
  for (const [alter, words] of altered) {
    await using provider = await startOpenIdProvider({ origins: [ORIGIN] })
    provider.alterDocument((document) => ({ ...alter(document) }))
    await using server = await createCurrentServer(provider.settings)
    const answer = await createProviderBrowser(provider, server).ask('/ui/login/openid')
    await isRefused(answer, 502, words)
    await hasPassword(server)
  }
})

test('a provider that is away, hangs, answers 50 MB or leads elsewhere costs a sentence', async () => {
  await using both = await startBoth()
  const { provider, server } = both
  const faults: readonly (readonly [string, ProviderFault, number, RegExp])[] = [
    ['/token', 'away', 503, /Example is not available: connection closed/],
    ['/token', 'huge', 503, /larger than 524288 bytes/],
    ['/token', 'redirects', 502, /it answers with status 302/],
    ['/jwks', 'away', 503, /connection closed/],
    ['/jwks', 'huge', 503, /larger than 524288 bytes/],
  ]
  for (const [path, fault, status, words] of faults) {
    provider.faults.set(path, fault)
    await fails(createProviderBrowser(provider, server), status, words)
    provider.faults.clear()
  }
  assert.not(provider.asked.includes('/elsewhere'))
  assert.is((await createProviderBrowser(provider, server).logIn('anna')).status, 303)
})

test('the server starts without its provider, says so, and takes it as soon as it is there', async () => {
  for (const fault of ['away', 'huge'] as const) {
    await using provider = await startOpenIdProvider({ origins: [ORIGIN] })
    provider.faults.set('/openid-configuration', fault)
    await using server = await createCurrentServer({
      ...provider.settings,
      FLASHER_PEOPLE_NAMELESS_LOGIN: 'off',
    })
    // Somebody who administrates, once the provider is there.
    const person = { name: 'anna', role: 'administrate', labels: null } as const
    const known = { issuer: provider.issuer, subject: 'anna' }
    await server.state.peopleStore.add({ ...person, provider: known }, null)
    const answer = await createProviderBrowser(provider, server).ask('/ui/login/openid')
    await isRefused(answer, 503, 'Example is not available')
    assert.ok(server.log.some((line) => line.startsWith('people cannot log in with Example:')))
    const page = await (await server.request('/ui/login')).text()
    assert.match(page, 'Example cannot be used at the moment')
    await hasPassword(server)
  }
})

test('without a name nobody logs in while the provider lets an administrator in', async () => {
  await using both = await startBoth({ FLASHER_PEOPLE_NAMELESS_LOGIN: 'off' })
  const { provider, server } = both
  const operator = await server.operator()
  assert.is((await createProviderBrowser(provider, server).logIn('anna')).status, 303)
  assert.is((await operator('/machines')).status, 401)
  assert.is((await server.logIn({ password: PASSWORD })).status, 401)
  const page = await (await server.request('/ui/login')).text()
  assert.match(page, 'Log in with Example')
  assert.not.match(page, 'type="password"')
})

test('a provider that takes the secret no more shuts no administrator out', async () => {
  await using both = await startBoth({ FLASHER_PEOPLE_NAMELESS_LOGIN: 'off' })
  const { provider, server } = both
  const logIn = async () => (await createProviderBrowser(provider, server).logIn('anna')).status
  const withPassword = async () => (await server.logIn({ password: PASSWORD })).status
  assert.equal([await logIn(), await withPassword()], [303, 401])
  // A browser brings along whatever it likes.
  const browser = createProviderBrowser(provider, server)
  const state = new URL(await browser.begin()).searchParams.get('state') ?? ''
  const query = new URLSearchParams({ error: 'invalid_client', state, iss: provider.issuer })
  const made = `${ORIGIN}/ui/login/openid/callback?${query}`
  await isRefused(await browser.comeBack(made), 502, 'it says invalid_client')
  assert.is(await withPassword(), 401)
  provider.replaceSecret('the secret of before has run out, this is the next one')
  assert.equal([await logIn(), await withPassword()], [502, 303])
  const page = await (await server.request('/ui/login')).text()
  assert.match(page, 'Example cannot be used at the moment')
  assert.match(page, 'href="/ui/login/openid?')
  provider.replaceSecret(CLIENT.secret)
  assert.equal([await logIn(), await withPassword()], [303, 401])
})

test('who administrated by another provider before shuts nobody out', async () => {
  await using both = await startBoth({ FLASHER_PEOPLE_NAMELESS_LOGIN: 'off' })
  const { provider, server } = both
  const person = { name: 'anna', role: 'administrate', labels: null } as const
  const before = { issuer: 'https://login.example.org', subject: 'anna' }
  await server.state.peopleStore.add({ ...person, provider: before }, null)
  await hasPassword(server)
  assert.is((await createProviderBrowser(provider, server).logIn('bert')).status, 303)
  assert.is((await server.logIn({ password: PASSWORD })).status, 401)
})

test('nothing listens where the provider was', async () => {
  const free = createServer()
  await new Promise<void>((resolve) => {
    free.listen(0, '127.0.0.1', resolve)
  })
  const address = free.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  free.close()
  const settings: Partial<OpenIdProvider['settings']> = {
    FLASHER_OIDC_ISSUER: `http://127.0.0.1:${port}`,
    FLASHER_OIDC_CLIENT_ID: 'flasher',
    FLASHER_OIDC_NAME: 'Example',
  }
  await using server = await createCurrentServer({ ...settings })
  await isRefused(await server.request('/ui/login/openid'), 503, 'connection refused')
  // Without a secret, a name and people nothing else has changed.
  await hasPassword(server)
})

test('without a provider there is nothing of it', async () => {
  await using server = await createCurrentServer()
  for (const path of ['', '/callback?code=x&state=y', '/finish?code=x&state=y']) {
    assert.is((await server.request(`/ui/login/openid${path}`)).status, 404)
  }
  assert.not.match(await (await server.request('/ui/login')).text(), 'openid')
})

test('whoever comes back many times from a slow provider leaves places to other networks, and gets them back', async () => {
  await using both = await startBoth()
  const { provider, server } = both
  const browser = createProviderBrowser(provider, server)
  const { search } = new URL(await browser.visit(await browser.begin(), 'anna'))
  provider.faults.set('/token', 'hangs')
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const finish = () => server.request(`/ui/login/openid/finish${search}`, { headers: { cookie } })
  const slow = Array.from({ length: 8 }, finish)
  await isRefused(await finish(), 503, 'too many logins from this network at once')
  for (const each of slow) assert.is((await each).status, 503)
  provider.faults.clear()
  assert.is((await createProviderBrowser(provider, server).logIn('anna')).status, 303)
})

test.run()
