import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
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

test.run()
