/** Sessions that end together, and sessions of several servers in one cookie. */
import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { H3Event } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCacheSessions } from '#fleet/access/owner-rows.ts'
import { createPeople } from '#fleet/access/accounts.ts'
import { createDatabase } from '#fleet/state/database.ts'
import { createSecret } from '#kit/web/access/secret.ts'
import { createSessions } from '#kit/web/access/session.ts'

const test = suite('sessions')

/** A server, and what a start of it reads; and a cache beside it, or with a state of its own. */
async function createFixture() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-session-'))
  const secret = await createSecret({ path: join(folder.path, 'session-secret'), configured: '' })
  const clock = { time: 1_800_000_000_000 }
  const now = () => new Date(clock.time)
  const path = join(folder.path, 'state.db')
  const openDatabase = () => createDatabase({ path, release: '1.2.3', line: 'current', now })
  let database = await openDatabase()
  let people = createPeople(database, { now })
  await people.openSessions()
  const restart = async (change?: () => Promise<void>) => {
    await database[Symbol.asyncDispose]()
    await change?.()
    database = await openDatabase()
    people = createPeople(database, { now })
    await people.openSessions()
    return open()
  }
  const open = () => createSessions({ secret, now, book: people.sessions })
  const openCache = (state = path) => {
    const book = createCacheSessions({ state, signedOut: join(folder.path, 'out.json'), now })
    return createSessions({ secret, now, book, renewsPeople: false })
  }
  return {
    clock,
    path,
    secret,
    open,
    openCache,
    restart,
    people: () => people,
    async endOthers() {
      await people.sessions.endNameless()
      return open().issue(NOBODY, false)
    },
    async addPerson(name: string) {
      const added = await people.add({ name, role: 'administrate', labels: null }, null)
      assert.ok(added.ok)
      return added.value
    },
    async [Symbol.asyncDispose]() {
      await database[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

const asking = (cookie: string) => ({ req: { headers: new Headers({ cookie }) } }) as H3Event
const NOBODY = asking('')
const pairOf = (line: string) => line.split(';')[0] ?? ''

const NO_SESSION = { id: '', mark: '', person: null } as const

type Sessions = ReturnType<typeof createSessions>

/** Says which of these `Set-Cookie` values open a session. */
const whichHold = (sessions: Sessions, lines: readonly string[]) =>
  lines.map((line) => sessions.read(asking(pairOf(line))) !== null)

test('a login in the second of a new password counts', async () => {
  await using fixture = await createFixture()
  const before = fixture.open().issue(NOBODY, false)
  const first = await fixture.endOthers()
  const between = fixture.open().issue(NOBODY, false)
  const second = await fixture.endOthers()
  const lines = [before, first, between, second, fixture.open().issue(NOBODY, false)]
  const wanted = [false, false, false, true, true]
  for (const open of [fixture.open, fixture.openCache, fixture.restart]) {
    assert.equal(whichHold(await open(), lines), wanted)
  }
  fixture.clock.time += 3_600_000
  assert.equal(whichHold(fixture.open(), lines), wanted, 'an hour later')
})

test('a session of a provider slides like any other, and ends 12 hours after the login', async () => {
  await using fixture = await createFixture()
  const { clock } = fixture
  const person = await fixture.addPerson('anna')
  const sessions = fixture.open()
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
  fixture.clock.time += 30 * YEARS
  const [one, two] = [fixture.open().issue(NOBODY, false), fixture.open().issue(NOBODY, false)]
  fixture.clock.time -= 30 * YEARS
  assert.equal(whichHold(await fixture.restart(), [one, two]), [true, true])
  await fixture.open().revoke(fixture.open().read(asking(pairOf(one))) ?? NO_SESSION)
  for (const weeks of [0, 2, 1000]) {
    fixture.clock.time += weeks * 7 * 24 * 3_600_000
    await fixture.open().revoke({ id: `another ${weeks}`, person: null })
    assert.equal(whichHold(await fixture.restart(), [one, two]), [false, true])
    fixture.clock.time -= weeks * 7 * 24 * 3_600_000
  }
  const mine = await fixture.endOthers()
  assert.equal(whichHold(await fixture.restart(), [one, two, mine]), [false, false, true])
})

for (const [what, change] of [
  ['was ahead at the login', (clock: { time: number }) => void (clock.time -= 30 * YEARS)],
  ['is behind when it ends', (clock: { time: number }) => void (clock.time -= 5 * YEARS)],
] as const) {
  test(`a session of a person ends where the clock ${what}, and the next one counts`, async () => {
    await using fixture = await createFixture()
    const [anna, otto] = [await fixture.addPerson('anna'), await fixture.addPerson('otto')]
    const begin = (person: typeof anna) => fixture.open().issue(NOBODY, false, person)
    const [other, ended] = [begin(otto), begin(anna)]
    change(fixture.clock)
    await fixture.people().setRights(anna.id, {})
    const between = begin(anna)
    await fixture.people().setPassword(anna.id, 'a hash')
    const lines = [ended, between, begin(anna), other]
    for (const open of [fixture.open, fixture.openCache, fixture.restart]) {
      assert.equal(whichHold(await open(), lines), [false, false, true, true])
    }
  })
}

test('more logouts than anybody has in a week end all sessions of theirs rather than none', async () => {
  await using fixture = await createFixture()
  const anna = await fixture.addPerson('anna')
  const [mine, hers] = [
    fixture.open().issue(NOBODY, false),
    fixture.open().issue(NOBODY, false, anna),
  ]
  const gone = fixture.open().issue(NOBODY, false)
  await fixture.open().revoke(fixture.open().read(asking(pairOf(gone))) ?? NO_SESSION)
  const leave = (n: number) => fixture.open().revoke({ id: `s${n}`, person: null })
  await Promise.all(Array.from({ length: 999 }, (_, n) => leave(n)))
  assert.equal(whichHold(fixture.open(), [gone, mine, hers]), [false, true, true])
  await leave(1000)
  assert.equal(whichHold(await fixture.restart(), [gone, mine, hers]), [false, false, true])
})

test('where nobody learns of a role that was taken away, a session of a person is not renewed', async () => {
  await using fixture = await createFixture()
  const [server, cache] = [fixture.open(), fixture.openCache('/proc/none.db')]
  const anna = await fixture.addPerson('anna')
  const lines = [server.issue(NOBODY, false, anna), server.issue(NOBODY, false)]
  fixture.clock.time += 2 * 3_600_000
  const areStale = (sessions: Sessions) =>
    lines.map((line) => sessions.read(asking(pairOf(line)))?.isStale)
  assert.equal(areStale(server), [true, true])
  assert.equal(areStale(cache), [false, true])
})

test('a session that goes on does not outlive the end of all', async () => {
  await using fixture = await createFixture()
  const session = fixture.open().read(asking(pairOf(fixture.open().issue(NOBODY, false))))
  await fixture.endOthers()
  const renewed = fixture.open().renew(NOBODY, false, session ?? NO_SESSION)
  assert.equal(whichHold(fixture.open(), [renewed]), [false])
})

test('a session of a release that knew no rows has ended', async () => {
  await using fixture = await createFixture()
  const { id, name, role } = await fixture.addPerson('anna')
  const iat = Math.floor(fixture.clock.time / 1000)
  const sign = (purpose: string, prefix: string, claims: object) => {
    const text = JSON.stringify({ bty_authed: true, iat, sid: 'one', ...claims })
    const body = Buffer.from(text).toString('base64url')
    return `flasher-token=${prefix}${body}.${fixture.secret.sign(`${purpose}:${body}`)}`
  }
  const who = { id, name, role, labels: null, from: iat, gen: 0 }
  const lines = [
    sign('session', '', { gen: 0 }),
    sign('session', '', {}),
    sign('person', 'p.', { who }),
  ]
  for (const each of [fixture.open(), fixture.openCache(), fixture.openCache('/proc/none.db')]) {
    assert.equal(whichHold(each, lines), [false, false, false])
  }
  const fresh = sign('session', '', { mark: fixture.people().sessions.markOf(null) })
  assert.equal(whichHold(fixture.open(), [fresh]), [true], 'the same with the mark of the row')
  assert.equal(whichHold(fixture.open(), [sign('session', '', { mark: '' })]), [false])
})

const LOSSES: Readonly<Record<string, (path: string) => Promise<void>>> = {
  removed: (path) => rm(path),
  empty: (path) => writeFile(path, ''),
}

for (const [what, lose] of Object.entries(LOSSES)) {
  test(`no session comes back where the state is ${what}`, async () => {
    await using fixture = await createFixture()
    const lines = [
      fixture.open().issue(NOBODY, false),
      fixture.open().issue(NOBODY, false, await fixture.addPerson('anna')),
    ]
    await fixture.restart(() => lose(fixture.path))
    assert.equal(whichHold(fixture.open(), lines), [false, false])
    assert.equal(whichHold(fixture.openCache(), lines), [false, false])
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
  const [first, second] = [one.open(), two.open()]
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
  await two.people().sessions.endNameless()
  assert.equal(isIn(), [true, false])
  browser.take(second.issue(browser.event(), false))
  assert.equal(isIn(), [true, true])
  browser.take(first.clear(browser.event(), false))
  assert.equal(isIn(), [false, true])
  browser.take(second.clear(browser.event(), false))
  assert.equal([isIn(), browser.cookie()], [[false, false], ''])
})

test('four sessions are kept, the newest logins first, and nothing else', async () => {
  const fixtures = await Promise.all(Array.from({ length: 5 }, () => createFixture()))
  const servers = fixtures.map((each) => each.open())
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
