import { createHmac } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seeOther } from '#kit/web/answers/answers.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import type { Site } from '#server/routes/site.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { createTestServer, listen, type TestServer } from '#test/support/server/server.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const test = suite('logging in')

const logIn = (server: TestServer, fields: Record<string, string>, headers = {}) =>
  server.request('/ui/login', { method: 'POST', body: new URLSearchParams(fields), headers })

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

const isIn = async (server: TestServer, cookie: string) =>
  (await server.request('/machines', { headers: { cookie } })).status === 200

test('the right password opens a session', async () => {
  await using server = await createTestServer()
  const answer = await logIn(server, { password: PASSWORD })
  assert.is(answer.status, 303)
  assert.is(answer.headers.get('location'), '/ui/dashboard')
  const [line = ''] = answer.headers.getSetCookie()
  assert.match(
    line,
    /^flasher-token=[\w-]+\.[\w-]+; Path=\/; Max-Age=604800; HttpOnly; SameSite=Strict$/,
  )
  const [body = ''] = cookieOf(answer).slice('flasher-token='.length).split('.')
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  assert.is(claims.bty_authed, true)
  assert.ok(await isIn(server, cookieOf(answer)))
  const [noted] = await server.journal.list({ kind: 'auth.login.succeeded', limit: 1 })
  assert.is(noted?.subject_kind, 'auth')
})

test('a browser that keeps no cookies learns why, and no password is checked', async () => {
  await using server = await createTestServer()
  const shown = await server.request('/ui/login')
  const [line = ''] = shown.headers.getSetCookie()
  assert.is(line, 'flasher-login=1; Path=/ui/login; HttpOnly; SameSite=Strict')
  const fields = { password: PASSWORD, check: 'cookies' }
  const lost = await logIn(server, fields)
  assert.is(lost.status, 400)
  assert.match(await lost.text(), 'Allow cookies')
  assert.equal(lost.headers.getSetCookie(), [line])
  assert.is((await logIn(server, fields, { cookie: 'a=b; flasher-login=1' })).status, 303)
  const events = await server.journal.list({ text: 'login', limit: 9 })
  assert.equal(
    events.map(({ kind }) => kind),
    ['auth.login.succeeded'],
  )
})

test('a multipart form will do', async () => {
  await using server = await createTestServer()
  const body = new FormData()
  body.set('password', PASSWORD)
  assert.is((await server.request('/ui/login', { method: 'POST', body })).status, 303)
})

test('a wrong, empty or missing password shows the page again', async () => {
  await using server = await createTestServer()
  for (const fields of [{ password: 'letmein' }, { password: '' }, { other: 'x' }, {}]) {
    const answer = await logIn(server, fields)
    assert.is(answer.status, 401)
    assert.match(answer.headers.get('content-type') ?? '', 'text/html')
    assert.match(await answer.text(), '<form>')
    assert.equal(answer.headers.getSetCookie(), [])
  }
  const events = await server.journal.list({ text: 'login', limit: 9 })
  assert.equal(
    events.map(({ kind }) => kind),
    ['auth.login.failed'],
  )
  assert.not.match(JSON.stringify(events), 'letmein')
})

test('guessing gets slower, and the right password waits too', async () => {
  let time = Date.now()
  await using server = await createTestServer({ now: () => new Date(time) })
  for (let n = 0; n < 4; n++) assert.is((await logIn(server, { password: 'no' })).status, 401)
  const slowed = await logIn(server, { password: PASSWORD })
  assert.is(slowed.status, 429)
  assert.is(slowed.headers.get('retry-after'), '1')
  assert.match(await slowed.text(), 'Too many attempts')
  time += 1000
  assert.is((await logIn(server, { password: 'no' })).status, 401)
  assert.is((await logIn(server, { password: 'no' })).headers.get('retry-after'), '2')
  time += 2000
  assert.is((await logIn(server, { password: PASSWORD })).status, 303)
  assert.is((await logIn(server, { password: 'no' })).status, 401)
})

test('many guesses at once are no way around it', async () => {
  await using server = await createTestServer({
    async checkPassword() {
      await new Promise((resolve) => {
        setTimeout(resolve, 5)
      })
      return false
    },
  })
  const answers = await Promise.all(
    Array.from({ length: 50 }, () => logIn(server, { password: 'guess' })),
  )
  assert.ok(answers.filter(({ status }) => status === 401).length <= 5)
})

test('a session slides by the hour and ends after seven days of silence', async () => {
  let time = Date.now()
  await using server = await createTestServer({ now: () => new Date(time) })
  const first = cookieOf(await logIn(server, { password: PASSWORD }))
  const ask = (cookie: string) => server.request('/machines', { headers: { cookie } })
  time += HOUR - 1000
  assert.is(cookieOf(await ask(first)), '')
  time += 2000
  const second = cookieOf(await ask(first))
  assert.ok(second !== '' && second !== first)
  time += 6.9 * DAY
  const third = cookieOf(await ask(second))
  time += 6.9 * DAY
  assert.ok(await isIn(server, third))
  assert.not(await isIn(server, second))
  time += 7 * DAY
  assert.not(await isIn(server, third))
})

test('logging out ends the session for every copy of its cookie', async () => {
  let time = Date.now()
  await using server = await createTestServer({ now: () => new Date(time) })
  const first = cookieOf(await logIn(server, { password: PASSWORD }))
  time += 2 * HOUR
  const second = cookieOf(await server.request('/machines', { headers: { cookie: first } }))
  const out = await server.request('/ui/logout', { method: 'POST', headers: { cookie: second } })
  assert.is(out.status, 303)
  assert.is(out.headers.get('location'), '/ui/login')
  assert.match(out.headers.getSetCookie().at(-1) ?? '', /^flasher-token=; Path=\/; Max-Age=0/)
  assert.not(await isIn(server, first))
  assert.not(await isIn(server, second))
  assert.is((await server.journal.list({ kind: 'auth.logout', limit: 2 })).length, 1)
})

test('a cookie that is not ours, or not any more, opens nothing', async () => {
  await using server = await createTestServer()
  const cookie = cookieOf(await logIn(server, { password: PASSWORD }))
  const [body = '', signature = ''] = cookie.slice('flasher-token='.length).split('.')
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
  const later = encode({ ...claims, iat: claims.iat + 1 })
  const key = (await readFile(join(server.dir, 'session-secret'), 'utf8')).trim()
  const withoutPurpose = createHmac('sha256', key).update(body).digest('base64url')
  const forged = [
    `${later}.${signature}`,
    `${body}.${'A'.repeat(43)}`,
    `${body}.`,
    `${body}`,
    `.${signature}`,
    `${body}.${signature}.${signature}`,
    `${body}.${withoutPurpose}`,
    encode({ bty_authed: true, iat: claims.iat, sid: 'x' }),
    'null',
    '',
    '%00',
    'A'.repeat(8000),
  ]
  for (const value of forged) {
    assert.not(await isIn(server, `flasher-token=${value}`), value.slice(0, 80))
  }
  assert.ok(await isIn(server, `a=b; flasher-token=null; ${cookie}`))
})

test('where to go after the login stays on this server', async () => {
  await using server = await createTestServer()
  const rows = [
    ['/ui/machines?q=a', '/ui/machines?q=a'],
    ['https://evil.test/ui/x', '/ui/dashboard'],
    ['//evil.test/ui/x', '/ui/dashboard'],
    ['/\\evil.test/ui/', '/ui/dashboard'],
    ['/machines', '/ui/dashboard'],
    ['javascript:alert(1)', '/ui/dashboard'],
    ['/ui/login', '/ui/dashboard'],
    ['/ui/login?next=%2Fui%2Fx', '/ui/dashboard'],
    ['http://here.invalid/ui/machines', '/ui/dashboard'],
    ['/ui/../machines', '/ui/dashboard'],
  ] as const
  for (const [next, location] of rows) {
    const answer = await logIn(server, { password: PASSWORD, next })
    assert.is(answer.headers.get('location'), location, next)
  }
})

test('behind TLS the cookie is Secure; only a trusted proxy may say so', async () => {
  await using server = await createTestServer({
    env: { FLASHER_SERVER_TRUSTED_PROXIES: '127.0.0.0/8' },
  })
  await using http = await listen(server)
  const ask = async () => {
    const answer = await fetch(`${http.url}/ui/login`, {
      method: 'POST',
      body: new URLSearchParams({ password: PASSWORD }),
      headers: { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.7' },
      redirect: 'manual',
    })
    return answer.headers.getSetCookie()[0] ?? ''
  }
  assert.match(await ask(), /; Secure$/)
  server.set({ FLASHER_SERVER_TRUSTED_PROXIES: '10.0.0.0/8' })
  assert.not.match(await ask(), /Secure/)
  const [last, first] = await server.journal.list({ kind: 'auth.login.succeeded', limit: 2 })
  assert.is(first?.source_ip, '192.0.2.7')
  assert.is(last?.source_ip, '127.0.0.1')
})

const NEXT = 'another password'

const routes = (site: Site<Machine>): readonly Route[] => [
  {
    method: 'POST',
    path: '/change',
    access: { page: 'admin' },
    takes: 'form',
    async handle(event, form) {
      const [current, password] = [form.get('current') ?? '', form.get('password') ?? '']
      const changed = await site.changePassword(event, { current, password, repeated: password })
      return seeOther(changed.ok ? '/done' : `/${changed.refusal.why}`)
    },
  },
]

async function open() {
  const clock = { time: Date.now() }
  const server = await createTestServer({ now: () => new Date(clock.time), routes })
  const post = (path: string, fields: Readonly<Record<string, string>>, cookie = '') =>
    server.request(path, { method: 'POST', body: new URLSearchParams(fields), headers: { cookie } })
  const enter = (password: string) => post('/ui/login', { password })
  return {
    clock,
    server,
    logIn: enter,
    session: async () => cookieOf(await enter(PASSWORD)),
    change: (cookie: string, current: string, password = NEXT) =>
      post('/change', { current, password }, cookie),
    isIn: async (cookie: string) =>
      (await server.request('/machines', { headers: { cookie } })).status === 200,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

const goesTo = (answer: Response) => answer.headers.get('location')

test('guesses wait as those at the login do, and both count together', async () => {
  await using site = await open()
  const [cookie, other] = [await site.session(), await site.session()]
  for (let times = 0; times < 4; times += 1) {
    assert.is(goesTo(await site.change(cookie, `guess ${times}`)), '/wrong')
  }
  assert.is(goesTo(await site.change(cookie, PASSWORD)), '/wait')
  assert.is((await site.logIn(PASSWORD)).status, 429)
  site.clock.time += 1000
  // The same form of one session would be the other click of a double one.
  assert.is(goesTo(await site.change(other, PASSWORD)), '/done')
  const events = await site.server.journal.list({ subject_kind: 'auth', failed: true, limit: 9 })
  assert.ok(events.length > 0)
  assert.not.match(JSON.stringify(events), 'guess')
})

test('a session of the very second of the change ends, too; later ones hold', async () => {
  await using site = await open()
  const [mine, other] = [await site.session(), await site.session()]
  const fresh = cookieOf(await site.change(mine, PASSWORD))
  assert.equal(
    [await site.isIn(fresh), await site.isIn(mine), await site.isIn(other)],
    [true, false, false],
  )
  site.clock.time += 1000
  const later = cookieOf(await site.logIn(NEXT))
  assert.equal([await site.isIn(later), await site.isIn(fresh)], [true, true])
  // Issued anew after an hour of use, as any session.
  site.clock.time += 2 * 3_600_000
  const renewed = await site.server.request('/machines', { headers: { cookie: fresh } })
  assert.ok(await site.isIn(cookieOf(renewed)))
})

test('an event stream of another session ends', async () => {
  await using site = await open()
  const [mine, other] = [await site.session(), await site.session()]
  const stream = await site.server.request('/events/machines', { headers: { cookie: other } })
  const reader = stream.body?.getReader()
  await site.change(mine, PASSWORD)
  // The channel looks each second, and ends what has no session any more.
  for (let part = await reader?.read(); part?.done === false; part = await reader?.read());
  assert.is(site.server.listeners(), 0)
})

test.run()
