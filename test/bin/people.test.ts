/** `flasher-web people` beside a running server: what it changes counts at the next request. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome } from '#test/support/server/flasher-web.ts'

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

test.run()
