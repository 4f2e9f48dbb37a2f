/** What a provider says of somebody limits the machines that they see; and a provider that comes late, goes away or is not there. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { H3Event } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSecret } from '#kit/web/access/secret.ts'
import { createProvider } from '#kit/net/openid/provider.ts'
import { createLoginStates } from '#server/openid/provider-login.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'
import { CLIENT, startOpenIdProvider } from '#test/support/people/openid-provider.ts'
import { createProviderBrowser, ORIGIN } from '#test/support/people/provider-browser.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('scopes by a provider, and its ends')

const [RACK, OFFICE] = ['52:54:00:00:00:01', '52:54:00:00:00:02']

const macsOf = async (answer: Response) => {
  const listed: readonly { readonly mac: string }[] = await answer.json()
  return listed.map(({ mac }) => mac)
}

test('groups limit the machines that are seen and changed, by sessions and tokens', async () => {
  await using provider = await startOpenIdProvider({ origins: [ORIGIN] })
  await using server = await createCurrentServer({
    ...provider.settings,
    FLASHER_OIDC_SCOPES: 'team-a; rack a, team-b; office, leads; *',
  })
  const operator = await server.operator()
  await operator(`/machines/${RACK}`, asJson({ labels: ['rack a'] }, 'PUT'))
  await operator(`/machines/${OFFICE}`, asJson({ labels: ['office'] }, 'PUT'))
  const logIn = async (...groups: readonly string[]) => {
    provider.accounts.set('lena', { preferred_username: 'lena', groups: ['lab', ...groups] })
    const browser = createProviderBrowser(provider, server)
    assert.is((await browser.logIn('lena')).status, 303)
    return browser
  }
  const one = await logIn('team-a')
  assert.equal(await macsOf(await one.ask('/machines')), [RACK])
  assert.is((await one.ask(`/machines/${OFFICE}`)).status, 404)
  const lock = async (mac: string) =>
    (await one.ask(`/ui/machines/${mac}/do/lock`, { method: 'POST' })).status
  assert.equal([await lock(OFFICE), await lock(RACK)], [404, 303])
  const { peopleStore, tokens } = server.state
  const owner = peopleStore.findByName('lena')?.id ?? null
  const made = await tokens.create(
    { name: 'ci', scopes: ['read', 'machines'], expires_at: null, owner },
    10,
  )
  assert.ok(made.ok)
  const headers = { authorization: `Bearer ${made.value.token}` }
  const byToken = async () => await macsOf(await server.request('/machines', { headers }))
  assert.equal(await byToken(), [RACK])
  const change = asJson({ action: 'label', macs: [RACK], parameters: { add: ['office'] } })
  const labelled = await server.request('/machines/bulk', {
    ...change,
    headers: { ...change.headers, ...headers },
  })
  const [{ reason }] = (await labelled.json()).results
  assert.match(reason, 'The label office is the scope of people', 'although nobody has it yet')
  const two = await logIn('team-b')
  assert.is((await one.ask('/machines')).status, 401, 'the session with the other scope has ended')
  assert.equal([await macsOf(await two.ask('/machines')), await byToken()], [[OFFICE], [OFFICE]])
  assert.equal(await macsOf(await (await logIn('leads')).ask('/machines')), [RACK, OFFICE])
  const none = await logIn()
  assert.equal([await macsOf(await none.ask('/machines')), await byToken()], [[], []])
  assert.not.match(await (await none.ask('/ui/machines')).text(), /52[:-]54/)
})

const eventWith = (cookie: string) => new H3Event(new Request(ORIGIN, { headers: { cookie } }))

test('a login that is under way counts for ten minutes, and no more on a clock that was set back', async () => {
  await using folder = await makeFolder()
  const secret = await createSecret({ path: `${folder.path}/secret`, configured: '' })
  const start = Date.parse('2026-11-27T08:00:00Z')
  let ms = start
  const states = createLoginStates({ secret, now: () => new Date(ms) })
  const { state, cookie, nonce, verifier } = states.begin(eventWith(''), '/ui/machines', true)
  const [pair = ''] = cookie.split('; ')
  const read = (seconds: number) => {
    ms = start + seconds * 1000
    return states.read(eventWith(pair), state)
  }
  for (const seconds of [0, 599, -60]) {
    assert.equal(read(seconds), { state, next: '/ui/machines', nonce, verifier }, `${seconds}`)
  }
  for (const seconds of [600, 86_400, -61]) assert.is(read(seconds), null, `${seconds}`)
  ms = start
  assert.is(states.read(eventWith(pair), `${state}x`), null)
  assert.is(states.read(eventWith(pair), null), null)
})

test('a provider that goes away after a good start is missed with the next login, and so is its return', async () => {
  await using real = await startOpenIdProvider({ origins: [ORIGIN] })
  await using server = await createCurrentServer({
    ...real.settings,
    FLASHER_PEOPLE_NAMELESS_LOGIN: 'off',
  })
  real.accounts.set('anna', { preferred_username: 'anna', groups: ['admins'] })
  const anna = createProviderBrowser(real, server)
  assert.is((await anna.logIn('anna')).status, 303)
  const withPassword = async () => (await server.logIn({ password: PASSWORD })).status
  assert.is(await withPassword(), 401)
  // Its own client looks anew each time, since what was found counts for a moment.
  const news: (string | null)[] = []
  const provider = createProvider({
    issuer: real.issuer,
    clientId: CLIENT.id,
    clientSecret: CLIENT.secret,
    clientSecretFile: '',
    scope: 'openid',
    env: {},
    onChange: (failure) => news.push(failure?.detail ?? null),
    freshMs: 0,
  })
  const flow = { redirectUri: ORIGIN, state: 's', nonce: 'n', verifier: 'v'.repeat(43) }
  assert.is((await provider.begin(flow, false)).ok, true)
  real.faults.set('/openid-configuration', 'away')
  assert.is(provider.failure(), null, 'nobody has asked yet')
  assert.is((await provider.begin(flow, false)).ok, false)
  assert.is(provider.failure()?.why, 'away')
  real.faults.clear()
  await provider.check()
  assert.is(provider.failure(), null)
  assert.equal(news, [null, 'connection closed by the server', null])
  provider.close()
  assert.is((await anna.ask('/machines')).status, 200, 'who is logged in goes on')
})

/** Counts what is loaded for a provider by a server without one, and then by one that has one. */
const COUNT = `
import { registerHooks } from 'node:module'
let loaded = 0
registerHooks({
  resolve(name, context, next) {
    if (name === 'openid-client') loaded += 1
    return next(name, context)
  },
})
const { createCurrentServer } = await import('./test/support/people/current-server.ts')
const counts = []
for (const env of [{}, { FLASHER_OIDC_ISSUER: 'http://127.0.0.1:9', FLASHER_OIDC_CLIENT_ID: 'x' }]) {
  await using server = await createCurrentServer(env)
  for (const path of ['/ui/login', '/ui/login/openid', '/ui/login/openid/callback']) {
    await (await server.request(path)).text()
  }
  counts.push(loaded)
}
console.log(JSON.stringify(counts))
`

test('the client of a provider is loaded where one is set alone', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--no-warnings',
    '--input-type=module',
    '--eval',
    COUNT,
  ])
  const [without, withOne] = JSON.parse(stdout)
  assert.is(without, 0)
  assert.ok(withOne > 0)
})

test.run()
