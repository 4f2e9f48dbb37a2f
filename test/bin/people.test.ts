/** `flasher-web people` beside a running server: what it changes counts at the next request. */
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findPort } from '#test/support/http/ports.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'

const test = suite('flasher-web people')

const SECRET = 'a password of their own'

test('people are added, changed and removed while the server runs', async () => {
  await using home = await createServerHome()
  const env = { FLASHER_ADMIN_PASSWORD: 'the password of the tests' }
  await using server = await home.start([], env)
  const run = (argv: string, input = '') => home.run(['people', ...argv.split(' ')], env, input)
  const logIn = async (password: string) => {
    const answer = await fetch(`${server.url}/ui/login`, {
      method: 'POST',
      body: new URLSearchParams({ username: 'anna', password }),
      redirect: 'manual',
    })
    const cookie = answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    return async (path: string) => (await fetch(server.url + path, { headers: { cookie } })).status
  }

  const added = await run('add anna administrate', `${SECRET}\n`)
  assert.is(added.code, 0, added.stderr)
  const ask = await logIn(SECRET)
  assert.is(await ask('/tokens'), 200)

  assert.is((await run('role anna look')).code, 0)
  assert.is(await ask('/tokens'), 401, 'the session has ended')
  const looks = await logIn(SECRET)
  assert.equal([await looks('/machines'), await looks('/ui/people')], [200, 403])

  // A scope is begun, stays with another role, and is ended by its own switch alone.
  const scope = async () => JSON.parse((await run('list --json')).stdout)[0].labels
  assert.is((await run('role anna look --label lab --label bench')).code, 0)
  assert.is((await run('role anna look')).code, 0)
  assert.equal(await scope(), ['bench', 'lab'])
  assert.is((await run('role anna look --all-machines')).code, 0)
  assert.is(await scope(), null)
  const again = await logIn(SECRET)
  assert.is(await again('/machines'), 200)

  const generated = await run('password anna --generate')
  const [, fresh = ''] = /Password: (\S+)/.exec(generated.stdout) ?? []
  assert.is(await again('/machines'), 401)
  assert.is(await (await logIn(fresh))('/machines'), 200)

  const listed = JSON.parse((await run('list --json')).stdout)
  assert.equal([listed.length, listed[0].name, listed[0].role], [1, 'anna', 'look'])
  const last = await logIn(fresh)
  assert.is((await run('remove anna')).code, 0)
  assert.is(await last('/machines'), 401)
  assert.is((await run('list')).stdout, '')

  for (const wrong of ['role anna look', 'add x boss', 'add operator look', 'add Ä look']) {
    const refused = await run(wrong, `${SECRET}\n`)
    assert.is.not(refused.code, 0, wrong)
  }
})

const NAME = 'flasher-test'

async function createHome(shadow: string | null, before: readonly string[] = []) {
  const stack = new AsyncDisposableStack()
  const account = stack.use(await createSystemAccount({ name: NAME, shadow }))
  const prefix = [...account.prefix, ...before]
  const home = stack.use(await createServerHome({ prefix, uid: account.uid }))
  const env = { FLASHER_LINE: 'earlier', FLASHER_IMAGE_ROOT: home.at('images') }
  return {
    start: async () => home.start([], { ...env, FLASHER_SERVER_PORT: String(await findPort()) }),
    run: (more: Readonly<Record<string, string>> = {}) => home.run([], { ...env, ...more }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('it is the one of the user who runs the server; any other is refused, and slowed down', async () => {
  const before = await readFile('/etc/shadow', 'utf8')
  await using home = await createHome(hashOf('the right one'))
  await using server = await home.start()
  assert.match(server.stdout(), `Password: the one of ${NAME} on this system`)
  const page = await (await fetch(`${server.url}/ui/login`)).text()
  assert.match(page, `Password of ${NAME}`)
  assert.is((await login(server.url, 'the right one')).status, 303)
  for (const wrong of ['the right', 'the right one\0', `the right one${' '.repeat(600)}`]) {
    const { status, cookie } = await login(server.url, wrong)
    assert.equal([status, cookie], [401, ''])
  }
  // Each wrong one doubles the wait, so that sooner or later one is not checked at all.
  let tried = 'x'
  while ((await login(server.url, tried)).status === 401) tried += 'x'
  assert.ok(tried.length < 20)
  assert.is(await readFile('/etc/shadow', 'utf8'), before)
})

const REFUSED: readonly (readonly [string, string | null, RegExp])[] = [
  ['an account without a password', '', /flasher-test has no password, so you could not log in/],
  ['a locked one', '!', /no password, or its password is locked.*passwd flasher-test/s],
  ['one whose password was never set', '*', /passwd flasher-test/],
  ['a user without an account', null, /has no account on this system/],
]
for (const [name, shadow, message] of REFUSED) {
  test(`${name} is refused at the start, with what to do`, async () => {
    await using home = await createHome(shadow)
    const { code, stderr } = await home.run()
    assert.is(code, 1)
    assert.match(stderr, message)
  })
}

test('a helper that is missing, or gains no privileges, is named at the start', async () => {
  await using home = await createHome(hashOf('x'))
  const missing = await home.run({ FLASHER_ADMIN_PASSWORD_HELPER: '/nonexistent/unix_chkpwd' })
  assert.is(missing.code, 1)
  assert.match(missing.stderr, /\/nonexistent\/unix_chkpwd is not installed/)
  await using tied = await createHome(hashOf('x'), ['setpriv', '--no-new-privs'])
  const refused = await tied.run()
  assert.is(refused.code, 1)
  assert.match(refused.stderr, /no new privileges.*NoNewPrivileges=no/s)
})

test('a password in the configuration is none of this line', async () => {
  await using home = await createHome('!')
  const { code, stderr } = await home.run({ FLASHER_ADMIN_PASSWORD: 'known' })
  assert.is(code, 1)
  assert.match(stderr, /FLASHER_ADMIN_PASSWORD/)
})

test.run()
