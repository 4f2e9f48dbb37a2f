/** By every route there is: what has ended gives nothing, and no other site acts for anybody. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type Role, SCOPES } from '#kit/web/answers/rules/rights.ts'
import {
  addInside,
  addOutside,
  hideCanaries,
  INSIDE,
  readSome,
} from '#test/support/people/canaries.ts'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
import { openAssembled } from '#test/support/server/assembled.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('roles, by every route')

type ServerRoute = CurrentServer['routes'][number]
type Ask = (path: string, init?: RequestInit) => Promise<Response>

const isGated = ({ access }: ServerRoute) => access !== 'open'

const fill = (path: string) => path.replace(/:(?!mac)\w+/g, 'x').replace(':mac', INSIDE)

/** What would be taken somewhere: labels, orders, confirmations. */
const BODIES: Readonly<Record<string, RequestInit>> = {
  json: asJson({ action: 'flash', macs: [INSIDE], labels: ['mine'], ids: [1], name: 'x' }),
  form: asForm({ action: 'delete', mac: INSIDE, labels: 'mine', confirm: 'yes', all: '1' }),
}

const isRead = ({ method }: ServerRoute) => method === 'GET'
const bodiesOf = (route: ServerRoute) => (isRead(route) ? [{}] : Object.values(BODIES))

async function openServer() {
  const server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  await hideCanaries(server)
  return server
}

/** All that is kept but for what happened, and when somebody was seen. */
async function snapshot({ state }: CurrentServer): Promise<string> {
  const tokens = await state.tokens.list()
  return JSON.stringify([
    state.machines.peekAll(),
    // When one was over is noted a moment later.
    state.batches.list().map((batch) => ({ ...batch, ended_at: null })),
    state.peopleStore.list(),
    tokens.map((token) => ({ ...token, last_used_at: null })),
  ])
}

async function createToken(
  { state }: CurrentServer,
  of: string,
  {
    name = of,
    expires_at = null,
  }: { readonly name?: string; readonly expires_at?: string | null } = {},
) {
  const owner = state.peopleStore.findByName(of)?.id ?? null
  const made = await state.tokens.create({ name, scopes: SCOPES, expires_at, owner }, 10)
  assert.ok(made.ok)
  return made.value
}

const withToken =
  ({ request }: CurrentServer, token: string): Ask =>
  (path, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return request(path, { ...init, headers })
  }

/** Lists the routes that answer otherwise than `expected` says. */
async function listOthers(
  routes: readonly ServerRoute[],
  ask: Ask,
  isExpected: (status: number, answer: Response) => boolean,
  headers: Readonly<Record<string, string>> = {},
): Promise<readonly string[]> {
  const others: string[] = []
  for (const route of routes) {
    for (const body of bodiesOf(route)) {
      const given = new Headers(body.headers)
      for (const [name, value] of Object.entries(headers)) given.set(name, value)
      const answer = await ask(fill(route.path), { ...body, method: route.method, headers: given })
      await answer.body?.cancel()
      if (!isExpected(answer.status, answer)) {
        others.push(`${route.method} ${route.path}: ${answer.status}`)
      }
    }
  }
  return others
}

const isForbidden = (status: number) => status === 403
/** An address that shows wrong tokens waits. */
const isUnknown = (status: number) => status === 401 || status === 429
const isNobody = (status: number, { headers }: Response) =>
  status === 401 || (status === 303 && (headers.get('location') ?? '').startsWith('/ui/login'))

test('a session or token that has ended, or was made up, is nobody', async () => {
  await using server = await openServer()
  const gated = server.routes.filter(isGated)
  const api = gated.filter(({ access }) => typeof access !== 'object')
  const { peopleStore, tokens } = server.state
  const operator = await server.operator()

  await addPerson(server, 'anna', 'administrate')
  const fields = { username: 'anna', password: 'a password of their own' }
  const { cookie } = await server.logIn(fields)
  const [, claims = '', signature = ''] = cookie.slice('flasher-token='.length).split('.')
  const text = Buffer.from(claims, 'base64url').toString()
  assert.match(text, 'anna')
  const grown = Buffer.from(text.replace('anna', 'root')).toString('base64url')
  const lea = await addPerson(server, 'lea', 'operate')
  const owned = await createToken(server, 'lea')
  const revoked = await createToken(server, 'anna')
  await tokens.revoke(revoked.record.id)
  const expires = Temporal.Now.instant().add({ seconds: 2 })
  const expires_at = expires.toString({ fractionalSecondDigits: 3 })
  const expired = await createToken(server, 'anna', { name: 'short', expires_at })
  const { cookie: left } = await server.logIn(fields)
  await server.withCookie(left)('/ui/logout', { method: 'POST' })
  await operator(
    `/ui/people/${peopleStore.findByName('lea')?.id}/remove`,
    asForm({ confirm: 'yes', sure: '1' }),
  )
  assert.is(peopleStore.findByName('lea'), null)
  const before = await snapshot(server)

  const sessions: Readonly<Record<string, Ask>> = {
    'other claims': server.withCookie(`flasher-token=p.${grown}.${signature}`),
    'no signature': server.withCookie(`flasher-token=p.${claims}.`),
    'of the administrator': server.withCookie(`flasher-token=${claims}.${signature}`),
    'logged out': server.withCookie(left),
    'of who was removed': lea,
  }
  for (const [name, ask] of Object.entries(sessions)) {
    assert.equal(await listOthers(gated, ask, isNobody), [], name)
  }
  await sleep(Math.max(0, expires.epochMilliseconds - Date.now()))
  for (const [name, { token }] of Object.entries({ owned, revoked, expired })) {
    assert.equal(await listOthers(api, withToken(server, token), isUnknown), [], name)
  }
  assert.is(await snapshot(server), before)
})

test('another site acts for nobody, by no route', async () => {
  await using server = await openServer()
  const operator = await server.operator()
  const before = await snapshot(server)
  const posts = server.routes.filter((route) => !isRead(route) && route.path !== '/healthz')
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'http://evil.test' },
    { origin: 'null' },
  ]) {
    assert.equal(await listOthers(posts, operator, isForbidden, headers), [])
  }
  assert.is(await snapshot(server), before)
})

const PATH = '/events/machines'
const OUTSIDE = '52:54:00:00:00:02'
const ANY_OUTSIDE = /52[:-]54[:-]00[:-]00[:-]00[:-]02/

async function createScene(role: Role = 'operate') {
  const server = await createCurrentServer()
  const operator = await server.operator()
  const label = async (mac: string, ...labels: readonly string[]) => {
    const answer = await operator(`/machines/${mac}`, asJson({ labels }, 'PUT'))
    assert.is(answer.status, 200)
  }
  await label(INSIDE, 'lab')
  await label(OUTSIDE, 'office')
  const anna = await addPerson(server, 'anna', role, ['lab'])
  const id = server.state.peopleStore.findByName('anna')?.id ?? ''
  return { server, operator, label, anna, id, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

/** Asks with a token that a person owns. */
async function makeProgram({ state: { tokens }, request }: CurrentServer, owner: string) {
  const made = await tokens.create({ name: 'hers', scopes: ['read'], expires_at: null, owner }, 10)
  assert.ok(made.ok)
  const headers = { authorization: `Bearer ${made.value.token}` }
  return (path: string) => request(path, { headers })
}

const macsIn = (data = '') =>
  [...data.matchAll(/<tr id="m-([\da-f-]+)"/g)].map(([, mac = '']) => mac.replaceAll('-', ':'))

test('later updates show the machines of the scope at that moment alone, with their bars', async () => {
  await using scene = await createScene()
  const { server, label, anna, operator } = scene
  const hers = readEvents(await anna(`${PATH}?view=&view=q%3Doffice`))
  const all = readEvents(await operator(PATH))
  assert.equal(macsIn((await hers.next())?.data), [INSIDE])
  const seen: string[] = []
  const until = async (isLast: (macs: readonly unknown[]) => boolean) => {
    for (;;) {
      const sent = await hers.next()
      assert.ok(sent !== null)
      seen.push(sent.data)
      if (sent.name === 'machines-update.0' && isLast(macsIn(sent.data))) return
    }
  }
  await server.request(`/pxe/${OUTSIDE}/progress`, asJson(bodyOf({ phase: 'write' })))
  await label(OUTSIDE, 'office', 'more')
  assert.ok(await all.until(({ data }) => data.includes('more')))
  await label(OUTSIDE, 'lab')
  await until((macs) => macs.length === 2)
  const before = seen.splice(0).slice(0, -1).join('')
  assert.not.match(before, ANY_OUTSIDE)
  await label(OUTSIDE, 'office')
  await until((macs) => macs.length === 1)
  seen.length = 0
  await operator(`/machines/${OUTSIDE}`, { method: 'DELETE' })
  await operator(`/machines/${INSIDE}`, { method: 'DELETE' })
  await until((macs) => macs.length === 0)
  assert.not.match(seen.join(''), ANY_OUTSIDE)
  await hers.close()
  await all.close()
})

test('the stream of a token ends as its owner sees less by their role, with the same labels', async () => {
  await using scene = await createScene('administrate')
  const { server, operator, id } = scene
  const program = await makeProgram(server, id)
  const stream = readEvents(await program(PATH))
  assert.equal(macsIn((await stream.next())?.data), [INSIDE, OUTSIDE])
  const changed = await operator(`/ui/people/${id}/role`, asForm({ role: 'operate' }))
  assert.match(changed.headers.get('location') ?? '', 'done=role')
  assert.equal(server.state.peopleStore.find(id)?.labels, ['lab'])
  assert.is(await stream.until(() => false), null, 'it has ended')
  const again = readEvents(await program(PATH))
  assert.equal(macsIn((await again.next())?.data), [INSIDE])
  await again.close()
})

test('the stream of a token ends as its owner is blocked', async () => {
  await using scene = await createScene()
  const { server, operator } = scene
  const provider = { issuer: 'https://login.example', subject: 'otto' }
  const added = await server.state.peopleStore.add(
    { name: 'otto', role: 'operate', labels: null, provider },
    null,
  )
  assert.ok(added.ok)
  const program = await makeProgram(server, added.value.id)
  const stream = readEvents(await program(PATH))
  await stream.next()
  await operator(`/ui/people/${added.value.id}/block`, { method: 'POST' })
  assert.is((await program('/machines')).status, 403)
  assert.is(await stream.until(() => false), null, 'it has ended')
})

const STARTED = new Date()

/** Queries that lists take; others make nothing of them. */
const QUERIES = [
  '',
  '?q=name',
  '?q=state:failed&state=failed&sort=-name',
  '?folded=1&bars=all',
  '?list=1&q=flash',
  '?limit=1',
]

async function openScene(withOutside: boolean) {
  const server = await openAssembled({
    env: { FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' },
    // No run becomes silent between two questions.
    assembly: { clock: { now: () => STARTED, elapsed: () => 0 } },
  })
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  const inside = await addInside(server)
  if (withOutside) await addOutside(server)
  const operator = await server.operator()
  return { server, anna, operator, inside, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

type Scene = Awaited<ReturnType<typeof openScene>>

const fillRows = (path: string, { inside }: Scene) =>
  path
    .replace(':id', path.includes('/batches/') ? inside : runIdOf(1))
    .replace(/:(?!mac)\w+/g, 'x')
    .replace(':mac', INSIDE)

const isAsked = ({ access, method }: CurrentServer['routes'][number]) =>
  access !== 'open' && method === 'GET'

/** Without what differs between two servers anyway: times, and names that are made at random. */
const settle = (text: string) =>
  text
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d(%3A|:)\d\d(\1\d\d(\.\d+)?)?( ?UTC|Z)?/g, 'TIME')
    .replace(/(<time[^>]*>)[^<]*/g, '$1AGO')
    .replace(/[\d.]+ [KMGT]B free/g, 'SPACE free')
    .replace(/\/tmp\/flasher-web-\w+/g, 'FOLDER')
    .replace(/\b(?=[0-9a-z]*\d)[0-9a-z]{12,}\b/gi, 'ID')

type Who = 'anna' | 'operator'

async function answerOf(scene: Scene, who: Who, asked: string): Promise<string> {
  const answer = await scene[who](fillRows(asked, scene))
  return `${answer.status} ${settle(await readSome(answer))}`
}

/** What both differ in, with some text around it. */
function whereBoth(one: string, two: string): string {
  const at = [...one].findIndex((letter, index) => letter !== two[index])
  return [one, two].map((text) => text.slice(Math.max(0, at - 60), at + 60)).join(' | ')
}

test('no count, no order and no limit tells that they are there', async () => {
  await using alone = await openScene(false)
  await using beside = await openScene(true)
  const paths = alone.server.routes
    .filter(isAsked)
    .flatMap(({ path }) => QUERIES.map((query) => `${path}${query}`))
  async function listDiffering(who: Who): Promise<readonly string[]> {
    const differing: string[] = []
    for (const path of paths) {
      const [one, two] = [await answerOf(alone, who, path), await answerOf(beside, who, path)]
      if (one !== two) differing.push(`${path}: ${whereBoth(one, two)}`)
    }
    return differing
  }
  assert.equal(await listDiffering('anna'), [])
  const { length } = await listDiffering('operator')
  assert.ok(length > 50, `without a scope ${length} answers differ`)
})

test.run()
