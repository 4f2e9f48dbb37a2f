import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('tokens: one rule for the page and for programs')

async function open() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(await home.start([], { FLASHER_ADMIN_PASSWORD: 'secret words' }))
  const { cookie } = await login(server.url, 'secret words')
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  return {
    ask,
    /** The page that the form leads to. */
    async make(fields: readonly (readonly [string, string])[]) {
      const body = new URLSearchParams(fields.map(([name, value]) => [name, value]))
      const answer = await ask('/ui/account/tokens', { method: 'POST', body })
      const location = answer.headers.get('location')
      if (location === null) return { status: answer.status, page: await answer.text() }
      return { status: answer.status, page: await (await ask(location)).text() }
    },
    create: (wish: object) => ask('/tokens', asJson(wish)),
    list: async () => await (await ask('/tokens')).json(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const wish = (name: string, days: string) =>
  [
    ['name', name],
    ['scopes', 'read'],
    ['days', days],
  ] as const

test('a lifetime is one of those that are offered; nothing else is a token without an end', async () => {
  await using site = await open()
  for (const days of ['1e12', 'Infinity', 'abc', '-5', '31', '0', 'constructor']) {
    const { status, page } = await site.make(wish('x', days))
    assert.is(status, 303, days)
    assert.match(page, 'Select when the token expires.', days)
    assert.match(page, 'value="x"')
  }
  assert.is((await site.make(wish('x', '').slice(0, 2))).status, 303)
  assert.equal(await site.list(), [])
  for (const [days, span] of [
    ['30', 30],
    ['', null],
  ] as const) {
    const { status, page } = await site.make(wish(`for ${days}`, days))
    assert.is(status, 200)
    // The token is in the banner and its copy button alone; the command below has a variable.
    const [token = ''] = /flasher_[0-9a-f]{12}_[\w-]+/.exec(page) ?? []
    const [, command = ''] = /<pre[^>]*><code>(curl[^<]*)/.exec(page) ?? []
    assert.match(command, '/machines')
    assert.match(command, 'Bearer $FLASHER_TOKEN')
    assert.ok(token !== '' && !command.includes(token))
    const made = (await site.list()).at(-1)
    const lasts = made.expires_at && Date.parse(made.expires_at) - Date.parse(made.created_at)
    assert.is(lasts === null ? null : Math.round(lasts / 86_400_000), span)
  }
})

test('names, scopes and their number are the same rule on both sides', async () => {
  await using site = await open()
  const both = async (name: string, scopes: readonly string[]) => {
    const { page } = await site.make([
      ['name', name],
      ...scopes.map((scope) => ['scopes', scope] as const),
      ['days', '30'],
    ])
    return [(await site.create({ name, scopes })).status, page] as const
  }
  assert.is((await site.create({ name: 'ci', scopes: ['read'] })).status, 201)
  for (const [name, scopes, status, words] of [
    ['<b>', ['read'], 422, /letters, digits/],
    ['x', [], 422, /at least one of the listed/],
    ['x', ['root'], 422, /at least one of the listed/],
    ['ci', ['read'], 409, /A token named ci already exists/],
  ] as const) {
    const [answered, page] = await both(name, scopes)
    assert.is(answered, status, name)
    assert.match(page, words)
  }
  for (let count = (await site.list()).length; count < 200; count += 1) {
    assert.is((await site.create({ name: `n${count}`, scopes: ['read'] })).status, 201)
  }
  const [answered, page] = await both('one more', ['read'])
  assert.is(answered, 409)
  assert.match(page, /There are already 200 tokens/)
  assert.is((await site.list()).length, 200)
})

test('a token cannot have ended before it is made', async () => {
  await using site = await open()
  const past = await site.create({
    name: 'x',
    scopes: ['read'],
    expires_at: '2020-01-01T00:00:00Z',
  })
  assert.is(past.status, 422)
  assert.equal((await past.json()).detail, [
    { loc: ['body', 'expires_at'], msg: 'is in the past', type: 'custom' },
  ])
  const later = await site.create({
    name: 'x',
    scopes: ['read'],
    expires_at: '2999-01-01T00:00:00Z',
  })
  assert.is(later.status, 201)
})

const NEXT = 'correct horse battery'

interface Typed {
  readonly current: string
  readonly password: string
  readonly repeated?: string
}

async function openPassword(
  env: Readonly<Record<string, string>> = {},
  argv: readonly string[] = [],
) {
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
  await using site = await openPassword()
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
  await using site = await openPassword()
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
    await using site = await openPassword({ FLASHER_ADMIN_PASSWORD: 'from the environment' })
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
  await using site = await openPassword()
  const { status } = await site.change('', { current: site.password, password: NEXT })
  assert.is(status, 303)
  assert.is((await site.logIn(site.password)).status, 303)
})

test.run()
