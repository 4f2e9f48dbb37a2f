/** Changing the password: it is guessed no faster than at the login, and ends the sessions before it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seeOther } from '#kit/web/answers/answers.ts'
import type { Site } from '#server/routes/site.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { createTestServer } from '#test/support/server/server.ts'

const test = suite('password change')
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
  const logIn = (password: string) => post('/ui/login', { password })
  return {
    clock,
    server,
    logIn,
    session: async () => cookieOf(await logIn(PASSWORD)),
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
