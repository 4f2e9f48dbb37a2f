/** By every route there is: what has ended gives nothing, and no other site acts for anybody. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SCOPES } from '#kit/web/answers/rules/rights.ts'
import { hideCanaries, INSIDE } from '#test/support/people/canaries.ts'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
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

test.run()
