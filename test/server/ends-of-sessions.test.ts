/** What ends somebody's sessions, once it is acknowledged, holds: after a kill, on the next leader, beside a command; what a full disk cannot store is refused. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { startServer, until, PASSWORD as ADMIN } from '#test/support/cluster/servers.ts'
import { mountDisk } from '#test/support/cluster/small-disk.ts'
import { findPort } from '#test/support/http/ports.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('ends of sessions')
const postgres = lendDatabases(test)

const PASSWORD = 'a password of their own'
const FULL = 507

interface End {
  /** Of their page. */
  readonly path: string
  readonly fields: Readonly<Record<string, string>>
  /** For `flasher-web people`; none: by a page alone. */
  readonly words: readonly string[]
  /** What their cookie and their token get afterwards, where an administrator may ask. */
  readonly after: readonly number[]
}

const ENDS: Readonly<Record<string, End>> = {
  removed: { path: 'remove', fields: { confirm: 'yes' }, words: ['remove'], after: [401, 401] },
  lowered: { path: 'role', fields: { role: 'look' }, words: ['role', 'look'], after: [401, 403] },
  renewed: {
    path: 'password',
    fields: { password: 'another password of theirs' },
    words: ['password', '--generate'],
    after: [401, 200],
  },
  gone: { path: '/ui/logout', fields: {}, words: [], after: [401, 200] },
}
const HELD = [200, 200]

const send = (url: string, cookie: string, fields: Readonly<Record<string, string>>) =>
  fetch(url, {
    method: 'POST',
    headers: { cookie },
    body: new URLSearchParams(fields),
    redirect: 'manual',
  })

async function logIn(url: string, fields: Readonly<Record<string, string>>) {
  const answer = await send(`${url}/ui/login`, '', fields)
  assert.is(answer.status, 303)
  return answer.headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

type Person = Awaited<ReturnType<typeof addPerson>>

/** Somebody who administrates, with a session and a token. */
async function addPerson(url: string, name: string) {
  const admin = await logIn(url, { password: ADMIN })
  const added = { name, role: 'administrate', labels: '', password: PASSWORD }
  assert.is((await send(`${url}/ui/people`, admin, added)).status, 303)
  const cookie = await logIn(url, { username: name, password: PASSWORD })
  const [, claims = ''] = /p\.([^.]+)\./.exec(cookie) ?? []
  const { who } = JSON.parse(Buffer.from(claims, 'base64url').toString())
  const answer = await fetch(`${url}/tokens`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/json' },
    body: JSON.stringify({ name, scopes: ['admin'] }),
  })
  const { token } = await answer.json()
  return { name, id: String(who.id), admin, cookie, bearer: `Bearer ${token}` }
}

/** What their session and their token get. */
const ask = async (url: string, { cookie, bearer }: Person) =>
  await Promise.all(
    [{ cookie }, { authorization: bearer }].map(
      async (headers) => (await fetch(`${url}/power/credentials`, { headers })).status,
    ),
  )

/** Resolves to whether it was acknowledged, else a full disk has refused it. */
async function end(url: string, { path, fields }: End, { id, admin, cookie, name }: Person) {
  const isOwn = path.startsWith('/')
  const { status, headers } = isOwn
    ? await send(`${url}${path}`, cookie, fields)
    : await send(`${url}/ui/people/${id}/${path}`, admin, fields)
  if (status !== 303) assert.is(status, FULL, name)
  else assert.match(headers.get('location') ?? '', isOwn ? '/ui/login' : 'done=')
  return status === 303
}

async function addPeople(url: string, prefix: string) {
  const people: (End & { readonly person: Person })[] = []
  for (const [name, each] of Object.entries(ENDS)) {
    people.push({ ...each, person: await addPerson(url, `${prefix}-${name}`) })
  }
  return people
}

test('a full disk refuses it, and a kill right after the answer undoes nothing', async () => {
  await using home = await createServerHome()
  await using disk = await mountDisk(home.at('state'), 24)
  const env = { FLASHER_ADMIN_PASSWORD: ADMIN, FLASHER_SERVER_PORT: String(await findPort()) }
  const start = () => home.start([], env)
  let server = await start()
  const { url } = server
  try {
    const onPages = (await addPeople(url, 'page')).map((each) => ({
      ...each,
      act: () => end(url, each, each.person),
    }))
    const byCommands = (await addPeople(url, 'command')).flatMap((each) => {
      const [verb, ...words] = each.words
      if (verb === undefined) return []
      const argv = ['people', verb, each.person.name, ...words]
      return [{ ...each, act: async () => (await home.run(argv, env)).code === 0 }]
    })
    const all = [...onPages, ...byCommands]
    const headers = { cookie: all[0]?.person.admin ?? '', 'content-type': 'application/json' }
    const put = async (at: number) =>
      (await fetch(`${url}/machines/${macOf(at)}`, { method: 'PUT', headers, body: '{}' })).status
    assert.is(await put(0), 200)
    await disk.fill()
    // What was folded already gives room to the next writes.
    for (let at = 1, status = 200; status !== FULL; at += 1) {
      assert.is(status, 200)
      status = await put(at)
    }
    const left: typeof all = []
    for (const each of all) {
      const isDone = await each.act()
      assert.equal(await ask(url, each.person), isDone ? each.after : HELD, each.person.name)
      if (!isDone) left.push(each)
    }
    assert.ok(left.length > 0)
    await disk.empty()
    for (const each of left) {
      assert.ok(await each.act(), each.person.name)
      assert.equal(await ask(url, each.person), each.after, each.person.name)
      if (byCommands.includes(each)) continue
      server.child.kill('SIGKILL')
      await server.ended
      server = await start()
      assert.equal(await ask(url, each.person), each.after, each.person.name)
    }
    for (const { person, after } of all) assert.equal(await ask(url, person), after, person.name)
  } finally {
    await server[Symbol.asyncDispose]()
  }
})

test('the leader is killed right after its answer: nobody is let in again, on any server', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using one = await startServer(url)
  await one.leads()
  await using two = await startServer(url)
  await two.standsBy()
  let [leader, next] = [one, two]
  for (const each of await addPeople(next.url, 'all')) {
    const { person, after } = each
    assert.equal(await ask(next.url, person), HELD)
    assert.ok(await end(next.url, each, person), person.name)
    leader.kill('SIGKILL')
    await leader.process().ended
    await next.leads()
    leader.restart()
    await leader.standsBy()
    for (const server of [next, leader]) {
      // Who has just begun to lead may ask to try again.
      await until(async () => !(await ask(server.url, person)).includes(503))
      assert.equal(await ask(server.url, person), after, person.name)
    }
    ;[leader, next] = [next, leader]
  }
})

test.run()
