/** Logging in with a provider: a role from a group, a session that ends, and what is said to somebody without one. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { H3Event } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createProvider } from '#kit/net/openid/provider.ts'
import { createSecret } from '#kit/web/access/secret.ts'
import { createLoginStates } from '#server/openid/provider-login.ts'
import { opened } from '#test/support/opened.ts'
import { asForm, createCurrentServer } from '#test/support/people/current-server.ts'
import { CLIENT, startOpenIdProvider } from '#test/support/people/openid-provider.ts'
import { createProviderBrowser, ORIGIN } from '#test/support/people/provider-browser.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { asJson, readJson } from '#test/support/server/server.ts'

/** Discovery need not say by which algorithms the userinfo address signs. */
const leaveOut = (document: object) => ({
  ...document,
  userinfo_signing_alg_values_supported: undefined,
})

const test = suite('logging in with a provider')

/** One of each for all tests of the file; each test has people of its own. */
const theirs = opened(test, () => startOpenIdProvider({ origins: [ORIGIN] }))
const ours = opened(test, () => createCurrentServer(theirs().settings))
const store = () => ours().state.peopleStore
const openBrowser = () => createProviderBrowser(theirs(), ours())

test('a group gives a role, a person, a session and a record', async () => {
  theirs().accounts.set('u1', { preferred_username: 'Änna', groups: ['lab', 'guests', 'other'] })
  const browser = openBrowser()
  const page = await (await browser.ask('/ui/login?next=/ui/events')).text()
  assert.match(page, 'Log in with Example')
  assert.match(page, 'href="/ui/login/openid?next=%2Fui%2Fevents"')
  const back = await browser.logIn('u1', '/ui/machines?view=wall')
  assert.is(back.status, 303, await back.text())
  assert.is(back.headers.get('location'), '/ui/machines?view=wall')
  const [set = ''] = back.headers.getSetCookie().filter((each) => each.startsWith('flasher-token'))
  assert.match(
    set,
    /^flasher-token=p\.[\w.-]+; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
  )
  assert.is((await browser.ask('/ui/machines')).status, 200)
  assert.is((await browser.ask('/ui/people')).status, 403)
  const person = store().findByName('anna')
  assert.equal(
    [person?.role, person?.provider],
    ['operate', { issuer: theirs().issuer, subject: 'u1' }],
  )
  assert.is(store().passwordOf(person?.id ?? ''), null)
  const operator = await ours().operator()
  const events = await readJson(operator('/events?person=anna'))
  const lines = events.events.map(({ kind, actor, summary }: Record<string, string>) =>
    [kind, actor, summary].join(' · '),
  )
  assert.equal(lines, [
    'auth.login.succeeded · person:anna · anna logged in with Example',
    'auth.person.added · person:anna · anna was added by Example (operate)',
  ])
})

test('what the userinfo address answers counts as well where it is signed', async () => {
  await using signing = await startOpenIdProvider({ origins: [ORIGIN] })
  signing.signUserInfo()
  signing.alterClaims((said) => ({ ...said, groups: undefined }))
  signing.accounts.set('s1', { preferred_username: 'signed', groups: ['lab'] })
  for (const alter of [null, leaveOut]) {
    signing.alterDocument(alter)
    await using served = await createCurrentServer(signing.settings)
    const back = await createProviderBrowser(signing, served).logIn('s1', '/ui/events')
    assert.is(back.status, 303, await back.text())
    assert.is(served.state.peopleStore.findByName('signed')?.role, 'operate')
  }
  assert.ok(signing.asked.includes('/me'))
})

test('the state cookie is Lax, short, of the login alone, and holds nothing that opens a login', async () => {
  const browser = openBrowser()
  const answer = await browser.ask('/ui/login/openid?next=/ui/events')
  const [cookie = ''] = answer.headers.getSetCookie()
  assert.match(
    cookie,
    /^flasher-openid=[\w.-]+; Path=\/ui\/login; Max-Age=600; HttpOnly; SameSite=Lax$/,
  )
  const query = new URL(answer.headers.get('location') ?? '').searchParams
  assert.is(query.get('response_type'), 'code')
  assert.is(query.get('code_challenge_method'), 'S256')
  assert.is(query.get('redirect_uri'), `${ORIGIN}/ui/login/openid/callback`)
  const [, body = ''] = /^flasher-openid=([\w-]+)/.exec(cookie) ?? []
  const held = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'))
  assert.equal(Object.keys(held), ['state', 'next', 'iat'])
  assert.is.not(held.state, query.get('nonce'))
})

test('the callback answers 200 and leads on, since it gets no Strict cookie: other sessions stay', async () => {
  theirs().accounts.set('u2', { preferred_username: 'bert', groups: ['guests'] })
  const browser = openBrowser()
  browser.cookies.set('flasher-token', 'another.session')
  const there = await browser.begin()
  const back = await browser.comeBack(await browser.visit(there, 'u2'))
  const [set = ''] = back.headers.getSetCookie().filter((each) => each.startsWith('flasher-token'))
  assert.match(set, /^flasher-token=p\.[\w.-]+~another\.session;/)
})

test('who has no role sees why, what was said, and whom to ask; and nothing else', async () => {
  theirs().accounts.set('u3', { preferred_username: 'carl', groups: ['kitchen', '<b>'] })
  const browser = openBrowser()
  const back = await browser.logIn('u3')
  assert.is(back.status, 403)
  const page = await back.text()
  assert.match(page, 'Example identified you as carl, but none of your groups has a role')
  assert.match(page, 'Ask it@example.org')
  assert.match(page, 'kitchen')
  assert.match(page, '&lt;b&gt;')
  assert.match(page, 'href="/ui/login/openid?again=1"')
  assert.not(browser.cookies.has('flasher-token'))
  assert.is((await browser.ask('/ui/machines')).status, 303)
  assert.is(store().findByName('carl'), null)
})

test('a claim that is missing is named', async () => {
  theirs().accounts.set('u4', { preferred_username: 'dora' })
  const page = await (await openBrowser().logIn('u4')).text()
  assert.match(page, 'Not sent')
  assert.match(page, '<code>groups</code>')
})

test('a group that was taken away ends the sessions of before, and narrows tokens, with the next login', async () => {
  theirs().accounts.set('u5', { preferred_username: 'emil', groups: ['admins'] })
  const browser = openBrowser()
  await browser.logIn('u5')
  const first = browser.cookies.get('flasher-token') ?? ''
  const old = ours().withCookie(`flasher-token=${first}`)
  const made = await (await old('/tokens', asJson({ name: 'ci', scopes: ['admin'] }))).json()
  const useToken = async (path: string) =>
    (await ours().request(path, { headers: { authorization: `Bearer ${made.token}` } })).status
  assert.equal([(await old('/tokens')).status, await useToken('/tokens')], [200, 200])
  theirs().accounts.set('u5', { preferred_username: 'emil', groups: ['guests'] })
  // Nobody is asked in between: the provider says it with the next login.
  assert.is((await old('/tokens')).status, 200)
  const back = await openBrowser().logIn('u5')
  assert.is(back.status, 303)
  assert.is((await old('/machines')).status, 401)
  assert.equal([await useToken('/tokens'), await useToken('/machines')], [403, 200])
  theirs().accounts.set('u5', { preferred_username: 'emil', groups: [] })
  assert.is((await openBrowser().logIn('u5')).status, 403)
  assert.equal([await useToken('/machines'), store().findByName('emil')?.role], [403, null])
  const path = `/ui/people/${store().findByName('emil')?.id}`
  const person = await (await (await ours().operator())(path)).text()
  assert.match(person, 'ci, refused at the moment')
})

test('somebody with a name that is taken is not taken for them', async () => {
  const operator = await ours().operator()
  const fields = { name: 'frida', role: 'administrate', password: 'a password of their own' }
  await operator('/ui/people', asForm(fields))
  theirs().accounts.set('u6', { preferred_username: 'frida', groups: ['guests'] })
  theirs().accounts.set('u7', { preferred_username: 'administrator', groups: ['guests'] })
  for (const account of ['u6', 'u7']) assert.is((await openBrowser().logIn(account)).status, 303)
  assert.is(store().findByName('frida')?.provider, null)
  assert.is(store().findByName('frida-2')?.role, 'look')
  assert.is(store().findByName('administrator-2')?.role, 'look')
  await operator(`/ui/people/${store().findByName('frida')?.id}/remove`, { method: 'POST' })
})

test('two logins of one person at once make one person', async () => {
  theirs().accounts.set('u8', { preferred_username: 'gerd', groups: ['lab'] })
  const answers = await Promise.all([openBrowser().logIn('u8'), openBrowser().logIn('u8')])
  assert.equal(
    answers.map(({ status }) => status),
    [303, 303],
  )
  assert.is(store().findByName('gerd-2'), null)
})

test('an administrator blocks somebody, lets them in again, and removes them', async () => {
  theirs().accounts.set('u9', { preferred_username: 'hans', groups: ['lab'] })
  const browser = openBrowser()
  await browser.logIn('u9')
  const operator = await ours().operator()
  const post = async (what: string, fields = {}) => {
    const id = store().findByName('hans')?.id ?? ''
    const answer = await operator(`/ui/people/${id}/${what}`, asForm(fields))
    return answer.headers.get('location') ?? ''
  }
  const hans = `/ui/people/${store().findByName('hans')?.id}`
  assert.match(await (await operator(hans)).text(), 'Operator, from 127.0.0.1')
  assert.match(await post('block'), 'done=blocked')
  assert.is((await browser.ask('/machines')).status, 401)
  const refused = await openBrowser().logIn('u9')
  assert.is(refused.status, 403)
  assert.match(await refused.text(), 'an administrator of this server has blocked you')
  assert.match(await post('unblock'), 'done=unblocked')
  assert.is(store().findByName('hans')?.role, null)
  assert.is((await openBrowser().logIn('u9')).status, 303)
  // The provider alone knows their password, and says their role.
  assert.not.match(await post('password', { password: 'another password' }), 'done=')
  assert.not.match(await post('role', { role: 'administrate' }), 'done=')
  assert.is(store().findByName('hans')?.role, 'operate')
  assert.match(await post('remove'), 'done=removed')
  assert.is(store().findByName('hans'), null)
})

test('the account page has no form for a password that is not here', async () => {
  theirs().accounts.set('u10', { preferred_username: 'ines', groups: ['guests'] })
  const browser = openBrowser()
  await browser.logIn('u10')
  const page = await (await browser.ask('/ui/account')).text()
  assert.match(page, 'You log in with a provider. Change your password there.')
  const form = { current: 'x', password: 'another password', repeated: 'another password' }
  assert.is((await browser.ask('/ui/account/password', asForm(form))).status, 409)
})

test('who logs out is sent to the logout of the provider', async () => {
  theirs().accounts.set('u11', { preferred_username: 'jana', groups: ['guests'] })
  const browser = openBrowser()
  await browser.logIn('u11')
  const out = await browser.ask('/ui/logout', { method: 'POST' })
  const page = await out.text()
  assert.is(out.status, 200)
  assert.match(page, `content="0; url=${theirs().issuer}/session/end?`)
  assert.match(page, encodeURIComponent(`${ORIGIN}/ui/login`))
  assert.not(browser.cookies.has('flasher-token'))
  assert.is((await (await ours().operator())('/ui/logout', { method: 'POST' })).status, 303)
})

test('groups give the labels of a scope, which are another one with the next login', async () => {
  await using scoped = await createCurrentServer({
    ...theirs().settings,
    FLASHER_OIDC_SCOPES: 'lab; rack a; rack b, leads; *',
  })
  const labelsOf = async (groups: readonly string[]) => {
    theirs().accounts.set('u13', { preferred_username: 'lena', groups })
    const back = await createProviderBrowser(theirs(), scoped).logIn('u13')
    assert.is(back.status, 303)
    return scoped.state.peopleStore.findByName('lena')?.labels
  }
  assert.equal(await labelsOf(['guests', 'lab']), ['rack a', 'rack b'])
  assert.match(
    await (await (await scoped.operator())('/ui/people')).text(),
    'rack a</span> <span class="tag">rack b',
  )
  assert.equal(await labelsOf(['guests']), [])
  assert.is(await labelsOf(['guests', 'leads']), null)
})

test('each of two tabs gets in, and Back or a reload after the login shows the pages', async () => {
  theirs().accounts.set('u9', { preferred_username: 'tabea', groups: ['lab'] })
  const browser = openBrowser()
  const tabs = [await browser.begin('/ui/events'), await browser.begin('/ui/runs')] as const
  const [first, last] = [await browser.visit(tabs[0], 'u9'), await browser.visit(tabs[1], 'u9')]
  for (const [address, to] of [
    [first, '/ui/events'],
    [last, '/ui/runs'],
    [last, '/ui/dashboard'],
  ] as const) {
    const back = await browser.comeBack(address)
    assert.equal([back.status, back.headers.get('location')], [303, to], await back.text())
    assert.is((await browser.ask('/ui/machines')).status, 200)
  }
  assert.not(browser.cookies.has('flasher-openid'), 'no login is under way any more')
})

test('as many logins are under way as a cookie holds, the newest of them', async () => {
  const browser = openBrowser()
  for (let at = 0; at < 40; at++) await browser.begin(`/ui/machines?q=${at}`)
  assert.ok((browser.cookies.get('flasher-openid') ?? '').length < 3072)
  theirs().accounts.set('u10', { preferred_username: 'vera', groups: ['lab'] })
  assert.is((await browser.logIn('u10', `/ui/machines?q=${'x'.repeat(900)}`)).status, 303)
})

test('a login leads to pages of this server alone', async () => {
  theirs().accounts.set('u12', { preferred_username: 'karl', groups: ['guests'] })
  for (const next of [
    'https://evil.example/',
    '//evil.example/ui',
    '/\\evil.example/ui',
    '/ui/../../evil',
    'javascript:alert(1)',
    '/ui/login/openid',
    `/ui/${'x'.repeat(4000)}`,
  ]) {
    const back = await openBrowser().logIn('u12', next)
    assert.is(back.headers.get('location'), '/ui/dashboard', next)
  }
})

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
