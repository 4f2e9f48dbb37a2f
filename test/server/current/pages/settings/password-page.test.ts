/** Changing the password on /ui/account: who stays logged in, what is refused, and where else it is set. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'

const test = suite('changing the password')
const NEXT = 'correct horse battery'

interface Typed {
  readonly current: string
  readonly password: string
  readonly repeated?: string
}

async function open(env: Readonly<Record<string, string>> = {}, argv: readonly string[] = []) {
  const home = await createServerHome()
  const started = { now: await home.start(argv, env) }
  const ask = (cookie: string, path: string, init: RequestInit = {}) =>
    fetch(`${started.now.url}${path}`, { redirect: 'manual', ...init, headers: { cookie } })
  return {
    home,
    password: passwordIn(started.now.stdout()),
    ask,
    isIn: async (cookie: string) => (await ask(cookie, '/machines')).status === 200,
    logIn: (password: string) => login(started.now.url, password),
    /** The answer, and the page that it leads to. */
    async change(cookie: string, { current, password, repeated = password }: Typed) {
      const body = new URLSearchParams({ current, password, repeated })
      const answer = await ask(cookie, '/ui/account/password', { method: 'POST', body })
      const fresh = answer.headers.getSetCookie().at(-1)?.split(';')[0] ?? ''
      const location = answer.headers.get('location') ?? '/ui/account'
      const page = await ask(fresh || cookie, location)
      return { status: answer.status, fresh, page: await page.text() }
    },
    events: async (cookie: string) => {
      const { events } = await (await ask(cookie, '/events?subject_kind=auth&limit=20')).json()
      return JSON.stringify(events)
    },
    async restart() {
      await started.now[Symbol.asyncDispose]()
      started.now = await home.start(argv, env)
    },
    async [Symbol.asyncDispose]() {
      await started.now[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
    },
  }
}

test('the new password holds at once, other sessions end, and this one stays', async () => {
  await using site = await open()
  const [mine, other] = [await site.logIn(site.password), await site.logIn(site.password)]
  const changed = await site.change(mine.cookie, { current: site.password, password: NEXT })
  assert.is(changed.status, 303)
  assert.match(changed.page, 'Password changed. All other sessions have been logged out.')
  const check = async (when: string) => {
    assert.equal(
      [await site.isIn(changed.fresh), await site.isIn(mine.cookie), await site.isIn(other.cookie)],
      [true, false, false],
      when,
    )
    assert.is((await site.logIn(site.password)).status, 401, when)
  }
  await check('at once')
  const events = await site.events(changed.fresh)
  assert.match(events, 'auth.password.changed')
  for (const secret of [site.password, NEXT]) assert.not.match(events, secret)
  await site.restart()
  await check('after a restart')
  const { status, cookie } = await site.logIn(NEXT)
  assert.is(status, 303)
  assert.ok(await site.isIn(cookie))
})

test('what is refused says why in its field, and repeats nothing that was typed', async () => {
  await using site = await open()
  const { cookie } = await site.logIn(site.password)
  const current = site.password
  const rows = [
    [{ current, password: 'seven77' }, 'Enter at least 8 characters.'],
    [{ current, password: '🔑'.repeat(7) }, 'Enter at least 8 characters.'],
    [{ current, password: NEXT, repeated: 'another one' }, 'The two passwords are different.'],
    [{ current, password: 'x'.repeat(1025) }, 'Enter at most 1024 characters.'],
    [{ current, password: 'with\ttabulator' }, 'may not contain control characters'],
    [{ current, password: current }, 'The new password is the same as the current one.'],
    [{ current: 'a guess', password: NEXT }, 'Wrong password.'],
  ] as const
  for (const [typed, words] of rows) {
    const { status, page, fresh } = await site.change(cookie, typed)
    assert.is(status, 303, words)
    assert.is(fresh, '', words)
    assert.match(page, words)
    assert.match(page, 'aria-invalid="true"')
    assert.not.match(page, typed.password)
  }
  assert.ok(await site.isIn(cookie))
  assert.match(await site.events(cookie), 'auth.password.failed')
})

test('where the configuration sets the password, the page says where', async () => {
  {
    await using site = await open({ FLASHER_ADMIN_PASSWORD: 'from the environment' })
    const { cookie } = await site.logIn('from the environment')
    const { status, page } = await site.change(cookie, {
      current: 'from the environment',
      password: NEXT,
    })
    assert.is(status, 409)
    assert.match(page, 'set by the environment variable <code>FLASHER_ADMIN_PASSWORD</code>')
    assert.not.match(page, 'Change password')
  }
  const home = await createServerHome()
  await home.write('flasher.toml', '[admin]\npassword = "from a file"\n')
  const server = await home.start(['--config', home.at('flasher.toml')])
  const { cookie } = await login(server.url, 'from a file')
  const page = await (await fetch(`${server.url}/ui/account`, { headers: { cookie } })).text()
  assert.match(page, `set in <code>${home.at('flasher.toml')}</code>`)
  await server[Symbol.asyncDispose]()
  await home[Symbol.asyncDispose]()
})

test('without a session the form leads to the login', async () => {
  await using site = await open()
  const { status } = await site.change('', { current: site.password, password: NEXT })
  assert.is(status, 303)
  assert.is((await site.logIn(site.password)).status, 303)
})

test.run()
