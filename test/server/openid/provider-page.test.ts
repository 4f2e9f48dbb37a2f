/** The page that sets up a login with a provider: what is saved, what the test shows and leaves alone, and the switch. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { asForm, addPerson, createCurrentServer } from '#test/support/people/current-server.ts'
import { CLIENT, startOpenIdProvider } from '#test/support/people/openid-provider.ts'
import { createProviderBrowser, ORIGIN } from '#test/support/people/provider-browser.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { readJson } from '#test/support/server/server.ts'

const test = suite('the page of a provider')
const PAGE = '/ui/people/provider'

/** A provider, and a server whose only configuration file is `file`. */
async function open(toml = '', env: Readonly<Record<string, string>> = {}) {
  await using stack = new AsyncDisposableStack()
  const theirs = stack.use(await startOpenIdProvider({ origins: [ORIGIN] }))
  theirs.accounts.set('anna', { preferred_username: 'anna', groups: ['lab', 'admins'] })
  theirs.accounts.set('carl', { preferred_username: 'carl', groups: ['kitchen'] })
  const file = join(stack.use(await makeFolder()).path, 'flasher.toml')
  await writeFile(file, toml.replace('ISSUER', theirs.issuer))
  const ours = stack.use(await createCurrentServer({ FLASHER_CONFIG_FILE: file, ...env }))
  const admin = createProviderBrowser(theirs, ours)
  const { cookie } = await ours.logIn({ password: PASSWORD })
  const [name = '', value = ''] = cookie.split(/=(.*)/s)
  admin.cookies.set(name, value)
  const fields = {
    'oidc.issuer': theirs.issuer,
    'oidc.name': 'Keycloak',
    'oidc.client_id': CLIENT.id,
    'oidc.client_secret': CLIENT.secret,
    'oidc.administrate': 'admins',
    'oidc.operate': 'lab',
  }
  const held = stack.move()
  return {
    theirs,
    ours,
    admin,
    file: () => readFile(file, 'utf8'),
    save: (more: Readonly<Record<string, string>> = {}) =>
      admin.ask(PAGE, asForm({ ...fields, ...more })),
    turn: (to: string) => admin.ask(`${PAGE}/switch`, asForm({ to })),
    read: async (path: string) => await (await admin.ask(path)).text(),
    /** The whole way of a test; resolves to the page that it ends on. */
    async test(account: string) {
      admin.forgetProvider()
      const there = await admin.ask(`${PAGE}/test`)
      const address = await admin.visit(there.headers.get('location') ?? '', account)
      return { address, answer: await admin.comeBack(address) }
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const offers = async (ours: { request(path: string): Promise<Response> }) =>
  (await (await ours.request('/ui/login')).text()).includes('Log in with Keycloak')

test('what is saved first is off, the test says who would be what and why, and the switch keeps all of it', async () => {
  await using lab = await open()
  const preset = await lab.read(`${PAGE}?for=keycloak`)
  assert.match(preset, `${ORIGIN}/ui/login/openid/callback`)
  assert.match(preset, 'https://&lt;host&gt;/realms/&lt;realm&gt;')
  const unfilled = await lab.save({ 'oidc.issuer': 'https://keycloak.lab/realms/<realm>' })
  assert.match(unfilled.headers.get('location') ?? '', /^\/ui\/people\/provider\?error=/)
  assert.is(await lab.file(), '')

  const saved = await lab.save()
  assert.is(saved.headers.get('location'), `${PAGE}?saved=config`)
  assert.is(await offers(lab.ours), false)
  const before = await lab.ours.state.journal.list({ limit: 50 })
  const own = lab.admin.cookies.get('flasher-token')
  const { address, answer } = await lab.test('anna')
  const said = await answer.text()
  assert.match(said, 'anna can log in as Administrator.')
  assert.match(said, 'Administrator, because of admins')
  assert.match(said, 'all machines')
  assert.match(await (await lab.test('carl')).answer.text(), 'carl cannot log in')
  assert.is(lab.admin.cookies.get('flasher-token'), own)
  assert.equal(lab.ours.state.peopleStore.list(), [])
  assert.equal(await lab.ours.state.journal.list({ limit: 50 }), before)

  // Its answer is good once, and only for the session that began it.
  const { search } = new URL(address)
  assert.match(await lab.read(await again(lab.admin, `${PAGE}/test${search}`)), 'The test failed')
  const { cookie } = await lab.ours.logIn({ password: PASSWORD })
  const other = lab.ours.withCookie(cookie)
  const late = await other(`${PAGE}/test${search}`)
  const shown = await (await other(late.headers.get('location') ?? '')).text()
  assert.match(shown, 'in another session')
  assert.is((await lab.ours.request(`/ui/login/openid/finish${search}`)).status, 404)

  await lab.turn('on')
  assert.is(await offers(lab.ours), true)
  const kept = await lab.file()
  await lab.turn('off')
  assert.is(await offers(lab.ours), false)
  assert.is((await lab.ours.request('/ui/login/openid')).status, 404)
  assert.is(await lab.file(), kept)
  const { events } = await readJson(other('/events?kind=settings.login.updated'))
  assert.is(events[0]?.summary, 'Login with Keycloak was turned off')
})

const again = async (
  { ask }: { ask(path: string): Promise<Response> },
  path: string,
): Promise<string> => (await ask(path)).headers.get('location') ?? ''

test('what the environment sets is named and fixed, and a provider of a file is on', async () => {
  const toml = `[oidc]\nissuer = "ISSUER"\nname = "Keycloak"\nclient_id = "${CLIENT.id}"\n`
  await using lab = await open(toml, { FLASHER_OIDC_OPERATE: 'lab' })
  assert.is(await offers(lab.ours), true)
  const page = await lab.read(PAGE)
  assert.match(page, 'set by the environment variable <code>FLASHER_OIDC_OPERATE</code>')
  assert.not.match(page, 'name="oidc.operate"')
  assert.match(page, /Set in <code>[^<]*flasher\.toml<\/code>/)
  const { answer } = await lab.test('anna')
  const failed = await lab.read(answer.headers.get('location') ?? '')
  assert.match(failed, /The test failed\. Keycloak: it says invalid_client/)
  const anna = await addPerson(lab.ours, 'anna', 'operate')
  for (const path of [PAGE, `${PAGE}/test`]) assert.is((await anna(path)).status, 403)
})

test.run()
