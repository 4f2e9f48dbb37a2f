/** Real servers on one database with one key: sessions, logouts and the password outlive the leader. */
import { once } from 'node:events'
import { cp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { startFlasher } from '#test/support/terminal/flasher.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('secrets that servers share')
const postgres = lendDatabases(test)

const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher-web.mjs', import.meta.url))
const KEY = 'a key of at least thirty-two characters'
const PASSWORD = 'a password of the tests'
type Home = Awaited<ReturnType<typeof createServerHome>>

const start = async (home: Home, url: string, more: Readonly<Record<string, string>> = {}) =>
  home.start([], {
    FLASHER_SERVER_PORT: String(await findPort()),
    FLASHER_DATABASE_URL: url,
    FLASHER_DATABASE_KEY: KEY,
    ...more,
  })
/** A program that has the port already. */
async function listenAt(port: number) {
  const server = createServer()
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return { [Symbol.asyncDispose]: async () => void server.close() }
}

const isLoggedIn = async (url: string, cookie: string) =>
  (await fetch(`${url}/machines`, { headers: { cookie } })).status === 200

test('a session, a logout and the password are the same on the server that takes over', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using first = await createServerHome()
  await using second = await createServerHome()
  await first.run(['password'], {}, `${PASSWORD}\n`)
  const key = () => first.text('state/session-secret')
  let [kept, gone] = ['', '']
  {
    await using server = await start(first, url)
    kept = (await login(server.url, PASSWORD)).cookie
    gone = (await login(server.url, PASSWORD)).cookie
    await fetch(`${server.url}/ui/logout`, { method: 'POST', headers: { cookie: gone } })
    assert.is(await isLoggedIn(server.url, gone), false)
    // Nothing more is written: what was acknowledged is in the database.
    server.child.kill('SIGKILL')
    await server.ended
  }
  const rows = await postgres.query(name, 'SELECT * FROM flasher.secret')
  assert.equal(rows.map((row) => row['name']).toSorted(), ['admin-password', 'session-secret'])
  const stored = rows.map((row) => String(row['wrapped'])).join('')
  for (const plain of [(await key()).trim(), '$scrypt$']) assert.not.match(stored, plain)
  {
    await using server = await start(second, url)
    assert.is(await isLoggedIn(server.url, kept), true, 'the session goes on')
    assert.is(await isLoggedIn(server.url, gone), false, 'who logged out stays logged out')
    assert.ok((await login(server.url, PASSWORD)).cookie, 'the password is the same')
    assert.is(await second.text('state/session-secret'), await key())
  }
  // Its key is deleted and it is started again: all sessions end, everywhere.
  await rm(second.at('state/session-secret'))
  {
    await using server = await start(second, url)
    assert.is(await isLoggedIn(server.url, kept), false)
  }
  {
    await using server = await start(first, url)
    assert.is(await isLoggedIn(server.url, kept), false)
    assert.is(await key(), await second.text('state/session-secret'))
  }
})

test('whoever was put out of one server is out on the one that takes over', async () => {
  const name = await postgres.create()
  await using first = await createServerHome()
  await using second = await createServerHome()
  await first.run(['password'], {}, `${PASSWORD}\n`)
  const ENDS = ['removed', 'role', 'password', 'logout', 'stays'] as const
  const cookies = new Map<string, string>()
  {
    await using server = await start(first, postgres.urlOf(name))
    const post = async (path: string, cookie: string, fields: Readonly<Record<string, string>>) => {
      const body = new URLSearchParams(fields)
      const sent = { method: 'POST', body, headers: { cookie }, redirect: 'manual' } as const
      const answer = await fetch(`${server.url}${path}`, sent)
      assert.is(answer.status, 303, path)
      return answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
    }
    const { cookie: operator } = await login(server.url, PASSWORD)
    for (const username of ENDS) {
      const fields = { name: username, role: 'operate', labels: '', password: PASSWORD }
      await post('/ui/people', operator, fields)
      cookies.set(username, await post('/ui/login', '', { username, password: PASSWORD }))
    }
    const named = "SELECT id, record::jsonb ->> 'name' AS name FROM flasher.people"
    const people = await postgres.query(name, named)
    const idOf = (who: string) => people.find((row) => row['name'] === who)?.['id']
    const page = (who: string, what: string) => `/ui/people/${String(idOf(who))}/${what}`
    await post(page('removed', 'remove'), operator, { confirm: 'yes' })
    await post(page('role', 'role'), operator, { role: 'look' })
    await post(page('password', 'password'), operator, { password: `${PASSWORD} too` })
    await post('/ui/logout', cookies.get('logout') ?? '', {})
    for (const [who, cookie] of cookies) {
      assert.is(await isLoggedIn(server.url, cookie), who === 'stays', who)
    }
    server.child.kill('SIGKILL')
    await server.ended
  }
  for (const home of [second, first]) {
    await using server = await start(home, postgres.urlOf(name))
    for (const [who, cookie] of cookies) {
      assert.is(await isLoggedIn(server.url, cookie), who === 'stays', who)
    }
  }
})

test('the key that is deleted and the password that is set where a server stands by count where it leads', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using first = await createServerHome()
  await using second = await createServerHome()
  await first.run(['password'], {}, `${PASSWORD}\n`)
  await using leads = await start(first, url)
  const { cookie } = await login(leads.url, PASSWORD)
  const standBy = async () => {
    const own = { FLASHER_SERVER_PORT: String(await findPort()), FLASHER_DATABASE_URL: url }
    const env = { ...second.env, ...own, FLASHER_DATABASE_KEY: KEY }
    const started = startFlasher([], { program: PROGRAM, env })
    await started.saw('standing by')
    return {
      ...started,
      async [Symbol.asyncDispose]() {
        started.child.kill('SIGTERM')
        await started.ended
      },
    }
  }
  const areAlike = async (file: string) => {
    const read = (home: typeof first) => home.text(`state/${file}`).catch(() => null)
    const [one, two] = [await read(first), await read(second)]
    return one !== null && one === two
  }
  {
    await using _ = await standBy()
    await waitUntil(
      () => areAlike('session-secret'),
      () => 'both have one key',
    )
    assert.is(await isLoggedIn(leads.url, cookie), true, 'a first join ends nothing')
  }
  await rm(second.at('state/session-secret'))
  await using _ = await standBy()
  await waitUntil(
    async () => !(await isLoggedIn(leads.url, cookie)),
    () => 'the session ends',
  )
  await waitUntil(
    () => areAlike('session-secret'),
    () => 'both have one key',
  )
  const other = 'another password of the tests'
  await second.run(['password'], {}, `${other}\n`)
  await waitUntil(
    () => areAlike('admin-password'),
    () => 'both have one password',
  )
  assert.ok((await login(leads.url, other)).cookie)
})

test('who is refused beside a leader gives and takes nothing', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using first = await createServerHome()
  await using second = await createServerHome()
  await using leads = await start(first, url)
  await waitUntil(
    async () => (await postgres.query(name, 'SELECT name FROM flasher.secret')).length > 1,
    () => 'the rows are there',
  )
  const env = { FLASHER_DATABASE_URL: url }
  const other = await second.run([], { ...env, FLASHER_DATABASE_KEY: KEY.toUpperCase() })
  assert.is(other.code, 2, other.stderr)
  assert.match(other.stderr, 'database.key does not open the row')

  // A state of its own, with machines, is no part of this fleet.
  await using third = await createServerHome()
  {
    await using alone = await third.start([], { FLASHER_ADMIN_PASSWORD: PASSWORD })
    const { cookie } = await login(alone.url, PASSWORD)
    const headers = { cookie, 'content-type': 'application/json' }
    const put = { method: 'PUT', headers, body: '{"labels":[]}' }
    assert.is((await fetch(`${alone.url}/machines/52:54:00:00:00:01`, put)).status, 200)
  }
  const own = await third.text('state/session-secret')
  const refused = await third.run([], { ...env, FLASHER_DATABASE_KEY: KEY })
  assert.is(refused.code, 2, refused.stderr)
  assert.is(await third.text('state/session-secret'), own)
  const servers = await postgres.query(name, 'SELECT id FROM flasher.member')
  assert.is(servers.length, 1)
  assert.ok(leads.url)
})

test('a copy of the state folder does not start beside its server, and does as a server of its own', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using first = await createServerHome()
  await using second = await createServerHome()
  const ids = async () => (await postgres.query(name, 'SELECT id FROM flasher.member')).length
  {
    await using _ = await start(first, url)
    await waitUntil(
      async () => (await ids()) === 1,
      () => 'it is there',
    )
  }
  await cp(first.at('state'), second.at('state'), { recursive: true })
  // The same server at another port is no copy, however soon it comes back.
  await using _ = await start(first, url)
  const own = { FLASHER_SERVER_PORT: String(await findPort()), FLASHER_DATABASE_URL: url }
  const env = { ...own, FLASHER_DATABASE_KEY: KEY }
  const refused = await second.run([], env)
  assert.is(refused.code, 2, refused.stderr)
  assert.match(refused.stderr, 'the state folder is a copy of the one that')
  assert.match(refused.stderr, 'Delete cluster.json')
  await rm(second.at('state/cluster.json'))
  const copy = startFlasher([], { program: PROGRAM, env: { ...second.env, ...env } })
  await copy.saw('standing by')
  await waitUntil(
    async () => (await ids()) === 2,
    () => 'both are there',
  )
  copy.child.kill('SIGTERM')
  await copy.ended
})

test('another key is refused with a hint, and without one the log says so', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using first = await createServerHome()
  await using second = await createServerHome()
  {
    await using server = await start(first, url)
    server.child.kill('SIGTERM')
    await server.ended
  }
  const env = { FLASHER_DATABASE_URL: url }
  const other = await second.run([], { ...env, FLASHER_DATABASE_KEY: KEY.toUpperCase() })
  assert.is(other.code, 2, other.stderr)
  assert.match(other.stderr, 'database.key does not open the row')
  // Nobody reaches a server that is none of them: its port is not even tried.
  const port = await findPort()
  await using _ = await listenAt(port)
  const busy = {
    ...env,
    FLASHER_SERVER_PORT: String(port),
    FLASHER_DATABASE_KEY: KEY.toUpperCase(),
  }
  assert.match((await second.run([], busy)).stderr, 'database.key does not open the row')
  const short = await second.run([], { ...env, FLASHER_DATABASE_KEY: 'short' })
  assert.is(short.code, 2, short.stderr)
  assert.match(short.stderr, 'database.key is shorter than 32 characters')
  await using alone = await start(second, url, { FLASHER_DATABASE_KEY: '' })
  await alone.saw('database.key is not set')
})

test.run()
