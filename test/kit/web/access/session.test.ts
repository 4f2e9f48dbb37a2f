/** Sessions that end together, and sessions of several servers in one cookie. */
import { mkdtempDisposable, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { H3Event } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseJson } from '../../../../runtime/kit/foundation/json-reader.ts'
import { createSecret } from '../../../../runtime/kit/web/access/secret.ts'
import { createSignedOut } from '../../../../runtime/kit/web/access/signed-out.ts'
import { createSessions } from '../../../../runtime/kit/web/access/session.ts'

const test = suite('sessions')

async function createFixture() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-session-'))
  const secret = await createSecret({ path: join(folder.path, 'session-secret'), configured: '' })
  const clock = { time: 1_800_000_000_000 }
  const now = () => new Date(clock.time)
  const path = join(folder.path, 'signed-out.json')
  const said: string[] = []
  const open = async (more: { readonly renewsPeople?: boolean } = {}) =>
    createSessions({
      ...more,
      secret,
      now,
      signedOut: await createSignedOut({
        path,
        now,
        log: { warn: (message) => void said.push(message) },
      }),
    })
  return { clock, open, path, said, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

const asking = (cookie: string) => ({ req: { headers: new Headers({ cookie }) } }) as H3Event
const NOBODY = asking('')
const pairOf = (line: string) => line.split(';')[0] ?? ''

const NO_SESSION = { id: '', generation: null, person: null } as const

type Sessions = ReturnType<typeof createSessions>

/** Says which of these `Set-Cookie` values open a session. */
const whichHold = (sessions: Sessions, lines: readonly string[]) =>
  lines.map((line) => sessions.read(asking(pairOf(line))) !== null)

test('a login in the second of a new password counts', async () => {
  await using fixture = await createFixture()
  const sessions = await fixture.open()
  const before = sessions.issue(NOBODY, false)
  const mine = await sessions.endOthers(NOBODY, false)
  const lines = [before, mine, sessions.issue(NOBODY, false)]
  assert.equal(whichHold(sessions, lines), [false, true, true])
  assert.equal(whichHold(await fixture.open(), lines), [false, true, true], 'after a restart')
  fixture.clock.time += 3_600_000
  assert.equal(whichHold(sessions, lines), [false, true, true], 'an hour later')
})

test('two new passwords in one second: the second ends what began after the first', async () => {
  await using fixture = await createFixture()
  const [server, cache] = [await fixture.open(), await fixture.open()]
  const first = await server.endOthers(NOBODY, false)
  const between = server.issue(NOBODY, false)
  const second = await server.endOthers(NOBODY, false)
  const lines = [first, between, second, server.issue(NOBODY, false)]
  for (const sessions of [server, cache, await fixture.open()]) {
    assert.equal(whichHold(sessions, lines), [false, false, true, true])
  }
})

test('a session of a provider slides like any other, and ends 12 hours after the login', async () => {
  await using fixture = await createFixture()
  const { clock } = fixture
  const person = { id: 'a1', name: 'anna', role: 'operate', labels: null } as const
  const sessions = await fixture.open()
  let line = sessions.issueForProvider(NOBODY, false, person)
  const end = clock.time + 12 * 3_600_000
  for (let hours = 1; hours < 12; hours++) {
    clock.time += 3_602_000
    const session = sessions.read(asking(pairOf(line)))
    assert.is(session?.expiresAt, end)
    assert.ok(session?.isStale)
    line = sessions.renew(NOBODY, false, session ?? NO_SESSION)
    assert.match(line, /; Max-Age=604800; HttpOnly; SameSite=Strict$/)
  }
  clock.time = end - 1000
  assert.equal(whichHold(sessions, [line]), [true])
  clock.time = end
  assert.equal(whichHold(sessions, [line]), [false])
  // The clock was a day ahead at the login: the end that it gave is none that anybody can rely on.
  clock.time = end - 36 * 3_600_000
  assert.equal(whichHold(sessions, [line]), [false])
})

const YEARS = 365 * 24 * 3_600_000

test('one of a clock that ran ahead is good, and ends with a logout and with a new password', async () => {
  await using fixture = await createFixture()
  const sessions = await fixture.open()
  fixture.clock.time += 30 * YEARS
  const [one, two] = [sessions.issue(NOBODY, false), sessions.issue(NOBODY, false)]
  fixture.clock.time -= 30 * YEARS
  assert.equal(whichHold(await fixture.open(), [one, two]), [true, true])
  const headers = new Headers({ cookie: one.split(';')[0] ?? '' })
  await sessions.revoke(sessions.read({ req: { headers } } as H3Event)?.id ?? '')
  for (const weeks of [0, 2, 1000]) {
    fixture.clock.time += weeks * 7 * 24 * 3_600_000
    await sessions.revoke(`another ${weeks}`)
    assert.equal(whichHold(await fixture.open(), [one, two]), [false, true])
    fixture.clock.time -= weeks * 7 * 24 * 3_600_000
  }
  const mine = await sessions.endOthers(NOBODY, false)
  assert.equal(whichHold(sessions, [one, two, mine]), [false, false, true])
  assert.equal(whichHold(await fixture.open(), [one, two, mine]), [false, false, true])
})

const ANNA = { id: 'a1', name: 'anna', role: 'administrate', labels: null } as const

for (const [what, change] of [
  ['was ahead at the login', (clock: { time: number }) => void (clock.time -= 30 * YEARS)],
  ['is behind when it ends', (clock: { time: number }) => void (clock.time -= 5 * YEARS)],
] as const) {
  test(`a session of a person ends where the clock ${what}, and the next one counts`, async () => {
    await using fixture = await createFixture()
    const sessions = await fixture.open()
    const other = sessions.issue(NOBODY, false, { ...ANNA, id: 'b2' })
    const ended = sessions.issue(NOBODY, false, ANNA)
    change(fixture.clock)
    await sessions.endPerson(ANNA.id)
    const between = sessions.issue(NOBODY, false, ANNA)
    await sessions.endPerson(ANNA.id)
    const lines = [ended, between, sessions.issue(NOBODY, false, ANNA), other]
    for (const each of [sessions, await fixture.open()]) {
      assert.equal(whichHold(each, lines), [false, false, true, true])
    }
  })
}

test("the end of a person's sessions outlives ten thousand logouts of others", async () => {
  await using fixture = await createFixture()
  const sessions = await fixture.open()
  const ended = sessions.issue(NOBODY, false, ANNA)
  await sessions.endPerson(ANNA.id)
  const logouts = Array.from({ length: 9999 }, (_, index) => [`s${index}`, 4_000_000_000_000])
  const kept = parseJson(await readFile(fixture.path, 'utf8'))
  await writeFile(
    fixture.path,
    JSON.stringify(Object.assign({}, kept, Object.fromEntries(logouts))),
  )
  await (await fixture.open()).revoke('one more')
  await (await fixture.open()).revoke('and another')
  assert.equal(whichHold(await fixture.open(), [ended]), [false])
})

test('where nobody learns of a role that was taken away, a session of a person is not renewed', async () => {
  await using fixture = await createFixture()
  const [server, cache] = [await fixture.open(), await fixture.open({ renewsPeople: false })]
  const lines = [server.issue(NOBODY, false, ANNA), server.issue(NOBODY, false)]
  fixture.clock.time += 2 * 3_600_000
  const areStale = (sessions: Sessions) =>
    lines.map((line) => sessions.read(asking(pairOf(line)))?.isStale)
  assert.equal(areStale(server), [true, true])
  assert.equal(areStale(cache), [false, true])
})

test('after all were ended by a clock that ran ahead, a login counts and goes on', async () => {
  await using fixture = await createFixture()
  const sessions = await fixture.open()
  fixture.clock.time += 30 * YEARS
  await sessions.endOthers(NOBODY, false)
  fixture.clock.time -= 30 * YEARS
  const line = sessions.issue(NOBODY, false)
  assert.equal(whichHold(await fixture.open(), [line]), [true])
  const headers = new Headers({ cookie: line.split(';')[0] ?? '' })
  const session = sessions.read({ req: { headers } } as H3Event)
  assert.equal(whichHold(sessions, [sessions.renew(NOBODY, false, session ?? NO_SESSION)]), [true])
})

test('a session that goes on does not outlive the end of all', async () => {
  await using fixture = await createFixture()
  const sessions = await fixture.open()
  await sessions.endOthers(NOBODY, false)
  const renewed = sessions.renew(NOBODY, false, { ...NO_SESSION, id: 'read before', generation: 0 })
  assert.equal(whichHold(sessions, [renewed]), [false])
})

const LOSSES: Readonly<Record<string, (path: string) => Promise<void>>> = {
  removed: (path) => rm(path),
  empty: (path) => writeFile(path, ''),
  damaged: (path) => writeFile(path, '{"*:1800000000": '),
}

for (const [what, lose] of Object.entries(LOSSES)) {
  test(`no session that has ended comes back where the list of them is ${what}`, async () => {
    await using fixture = await createFixture()
    let sessions = await fixture.open()
    const ended: string[] = []
    for (let turn = 0; turn < 3; turn++) {
      const [left, other] = [sessions.issue(NOBODY, false), sessions.issue(NOBODY, false)]
      await sessions.revoke(sessions.read(asking(pairOf(left)))?.id ?? '')
      ended.push(left, other, await sessions.endOthers(NOBODY, false))
      await sessions.endOthers(NOBODY, false)
      fixture.clock.time += 5000
      const open = sessions.issue(NOBODY, false)
      assert.equal(whichHold(sessions, [open]), [true])
      await lose(fixture.path)
      assert.equal(whichHold(sessions, [open, ...ended]), [true, ...ended.map(() => false)])
      fixture.clock.time += 5000
      // While it runs, the server writes down again what it knows.
      await sessions.revoke('somebody else')
      assert.equal(whichHold(await fixture.open(), [open, ...ended]), [
        true,
        ...ended.map(() => false),
      ])
      await lose(fixture.path)
      sessions = await fixture.open()
      ended.push(open)
      assert.equal(
        whichHold(sessions, ended),
        ended.map(() => false),
        'a start without it',
      )
      const fresh = sessions.issue(NOBODY, false)
      const mine = await sessions.endOthers(NOBODY, false)
      assert.equal(whichHold(await fixture.open(), [fresh, mine]), [false, true])
    }
    assert.is(fixture.said.length > 0, what !== 'removed')
  })
}

/** A browser: one cookie for all servers of its host name. */
function createBrowser() {
  let cookie = ''
  return {
    event: () => asking(cookie),
    take(line: string) {
      cookie = line.includes('Max-Age=0') ? '' : pairOf(line)
    },
    cookie: () => cookie,
  }
}

test('servers on one host name leave the sessions of each other alone', async () => {
  await using one = await createFixture()
  await using two = await createFixture()
  const [first, second] = [await one.open(), await two.open()]
  const browser = createBrowser()
  const isIn = () => [first, second].map((each) => each.read(browser.event()) !== null)
  browser.take(first.issue(browser.event(), false))
  browser.take(second.issue(browser.event(), false))
  assert.equal(isIn(), [true, true])
  const session = first.read(browser.event())
  assert.ok(session)
  if (session !== null) browser.take(first.renew(browser.event(), false, session))
  assert.equal([isIn(), browser.cookie().split('~').length], [[true, true], 2])
  browser.take(second.issue(browser.event(), false))
  assert.equal(
    [isIn(), browser.cookie().split('~').length],
    [[true, true], 2],
    'in place of its own',
  )
  browser.take(await second.endOthers(browser.event(), false))
  assert.equal(isIn(), [true, true])
  browser.take(first.clear(browser.event(), false))
  assert.equal(isIn(), [false, true])
  browser.take(second.clear(browser.event(), false))
  assert.equal([isIn(), browser.cookie()], [[false, false], ''])
})

test('four sessions are kept, the newest logins first, and nothing else', async () => {
  const fixtures = await Promise.all(Array.from({ length: 5 }, () => createFixture()))
  const servers = await Promise.all(fixtures.map((each) => each.open()))
  const browser = createBrowser()
  for (const server of servers) browser.take(server.issue(browser.event(), false))
  const isIn = servers.map((each) => each.read(browser.event()) !== null)
  assert.equal(isIn, [false, true, true, true, true])
  const [server] = servers
  const odd = `flasher-token=${'x'.repeat(800)}~a,b~"c"~older.release.of-it; flasher-token=ä~b.c`
  const line = server?.issue(asking(Buffer.from(odd).toString('latin1')), false) ?? ''
  assert.match(line, /^flasher-token=[\w-]+\.[\w-]+~older\.release\.of-it~b\.c; Path=/)
  for (const each of fixtures) await each[Symbol.asyncDispose]()
})

test.run()
