/** Whoever has a scope gets nothing of a machine outside of it, by any route there is, and changes nothing there. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createAccounts } from '#fleet/access/accounts.ts'
import { MAX_SCOPE_CHARACTERS, parseScope } from '#fleet/access/rules/person.ts'
import { reachOf as reachOfRoute, type Route } from '#kit/web/answers/route.ts'
import { isSameReach, reachOf, canSee } from '#kit/web/answers/rules/rights.ts'
import {
  asMac,
  CANARY,
  hideCanaries,
  INSIDE,
  NOWHERE,
  OUTSIDE,
  readSome,
  UNLABELLED,
} from '#test/support/people/canaries.ts'
import {
  addPerson,
  asForm as formOf,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
import { EXPECTED, listUnmatched, nameOf } from '#test/support/people/expected-routes.ts'
import { askEverything, openCurrentScene } from '#test/support/people/rights-matrix.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { runIdOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('reach')

const isGated = ({ access }: CurrentServer['routes'][number]) => access !== 'open'

/** A server with canaries, and what a person with the scope `lab` asks with: a session, and a token of theirs. */
async function createScene() {
  const server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const hidden = await hideCanaries(server)
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  const { peopleStore, tokens } = server.state
  const owner = peopleStore.findByName('anna')?.id ?? null
  const scopes = ['read', 'machines', 'flash', 'power'] as const
  const made = await tokens.create({ name: 'hers', scopes, expires_at: null, owner }, 10)
  assert.ok(made.ok)
  const { token } = made.value
  const program = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return server.request(path, { ...init, headers })
  }
  return { server, ...hidden, anna, program, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

type Scene = Awaited<ReturnType<typeof createScene>>

/** What stands for the parameters of a path, for a machine. */
function fill(path: string, mac: string, { batches, events }: Scene): readonly string[] {
  const ids = path.includes('/batches/')
    ? [batches.mixed, batches.outside, batches.inside]
    : path.includes('/runs/')
      ? [runIdOf(1), runIdOf(2)]
      : [String(events[0])]
  const names = ['canary', 'x']
  return ids.flatMap((id) =>
    names.map((name) =>
      path
        .replace(':id', id)
        .replace(/:(?!mac)\w+/g, name)
        .replace(':mac', mac),
    ),
  )
}

/** Queries that lists take; others make nothing of them. */
const QUERIES = [
  '',
  '?q=canary',
  '?text=canary',
  `?mac=${OUTSIDE}`,
  `?subject_id=${OUTSIDE}`,
  '?sort=name',
  '?state=stalled',
  '?folded=1',
  '?bars=all',
]

const isForMachine = (path: string) => path.includes(':mac')

test('nothing of a machine outside is in any answer, by no query', async () => {
  await using scene = await createScene()
  const { server, operator, anna, program } = scene
  const gets = server.routes.filter((route) => isGated(route) && route.method === 'GET')
  const told: string[] = []
  let shown = 0
  for (const { path, access } of gets) {
    const paths = [...new Set(fill(path, INSIDE, scene))]
    for (const asked of paths.flatMap((each) => QUERIES.map((query) => `${each}${query}`))) {
      if (CANARY.test(await readSome(await operator(asked)))) shown += 1
      const askers = typeof access === 'object' ? [anna] : [anna, program]
      for (const ask of askers) {
        const answer = await ask(asked)
        const headers = JSON.stringify([...answer.headers])
        const found = CANARY.exec(withoutQuery(await readSome(answer), asked) + headers)
        if (found !== null)
          told.push(`${asked}: ${found.input.slice(found.index - 80, found.index + 80)}`)
      }
    }
  }
  assert.equal(told, [])
  assert.ok(shown > 30, `without a scope they are in ${shown} answers`)
})

/** What was asked for stands in forms and links of its answer. */
const withoutQuery = (text: string, asked: string): string => {
  const query = new URL(asked, 'http://x').searchParams
  const words = [...query.values(), ...asked.split(/[/?]/)].filter((word) => CANARY.test(word))
  return words.reduce(
    (rest, word) => rest.replaceAll(word, '').replaceAll(encodeURIComponent(word), ''),
    text,
  )
}

/** Bodies that some route takes: each is sent to all. */
const BODIES: readonly RequestInit[] = [
  {},
  asJson({}),
  asJson({ labels: ['lab'], name: 'mine' }),
  asJson({ boot_mode: 'ipxe-exit' }),
  asJson({ action: 'on' }),
  asJson({ name: 'image' }),
  asForm({ labels: 'lab', boot_mode: 'ipxe-exit', confirm: 'yes', was: '' }),
  asForm({ confirm: 'ask' }),
]

function asForm(fields: Readonly<Record<string, string>>): RequestInit {
  return { method: 'POST', body: new URLSearchParams(fields) }
}

test('a machine outside answers as one that is not there, and nothing changes it', async () => {
  await using scene = await createScene()
  const { server, anna, program } = scene
  const routes = server.routes.filter((route) => isGated(route) && isForMachine(route.path))
  const before = snapshot(server)
  const differing: string[] = []
  let asked = 0
  for (const { method, path, access } of routes) {
    const askers = typeof access === 'object' ? [anna] : [anna, program]
    for (const outside of [OUTSIDE, UNLABELLED]) {
      const [paths, others] = [fill(path, outside, scene), fill(path, NOWHERE, scene)]
      for (const [at, there] of paths.entries()) {
        for (const body of method === 'GET' ? [{}] : BODIES) {
          for (const ask of askers) {
            const init = { ...body, method }
            const [one, two] = [await ask(there, init), await ask(others[at] ?? '', init)]
            const texts = [await describe(one, outside), await describe(two, NOWHERE)]
            asked += 1
            if (texts[0] !== texts[1]) differing.push(`${method} ${there}: ${texts.join(' | ')}`)
          }
        }
      }
    }
  }
  assert.equal(differing, [])
  assert.ok(asked > 500, `${asked}`)
  assert.equal(snapshot(server), before)
})

/** An answer without the address that was asked for. */
async function describe(answer: Response, mac: string): Promise<string> {
  const text = `${answer.status} ${answer.headers.get('location') ?? ''} ${await answer.text()}`
  return text
    .replaceAll(mac, 'MAC')
    .replaceAll(encodeURIComponent(mac), 'MAC')
    .replaceAll(mac.replaceAll(':', '-'), 'MAC')
    .replace(/notice=[\w-]+/, '')
}

/** All that is kept of the machines outside. */
const snapshot = ({ state }: CurrentServer) =>
  JSON.stringify(
    [OUTSIDE, UNLABELLED].map((mac) => [
      { ...state.machines.peek(asMac(mac)), last_seen_at: null },
      state.runs.list({ mac, limit: 100 }),
    ]),
  )

const DONE = { done: 0, refused: 2 }

test('whatever acts on many leaves machines outside as they are', async () => {
  await using scene = await createScene()
  const { server, anna, program, batches, events } = scene
  const before = snapshot(server)
  const macs = [OUTSIDE, UNLABELLED]
  for (const ask of [anna, program]) {
    for (const request of [
      { action: 'flash' },
      { action: 'delete' },
      { action: 'disarm' },
      { action: 'label', parameters: { add: ['lab'], remove: ['canary-label'] } },
    ]) {
      const acted = await (await ask('/machines/bulk', asJson({ ...request, macs }))).json()
      assert.is(acted.done, DONE.done)
      assert.equal(
        acted.results.map(({ result }: { result: string }) => result),
        ['missing', 'missing'],
      )
      const found = await (
        await ask('/machines/bulk', asJson({ ...request, q: 'canary', dry_run: true }))
      ).json()
      assert.equal(found.results, [])
    }
    const power = await (await ask('/power/bulk', asJson({ action: 'off', macs }))).json()
    assert.equal(
      power.results.map(({ result }: { result: string }) => result),
      ['missing', 'missing'],
    )
    assert.is((await (await ask('/events/ack', asJson({ ids: events }))).json()).updated, 0)
    for (const action of ['pause', 'resume']) {
      assert.is((await ask(`/batches/${batches.mixed}/${action}`, { method: 'POST' })).status, 409)
    }
    for (const action of ['pause', 'resume', 'disarm', 'undo', 'retry']) {
      assert.is(
        (await ask(`/batches/${batches.outside}/${action}`, { method: 'POST' })).status,
        404,
      )
    }
    for (const action of ['disarm', 'undo', 'retry']) {
      assert.is((await ask(`/batches/${batches.mixed}/${action}`, { method: 'POST' })).status, 200)
    }
  }
  for (const action of ['flash', 'delete', 'lock', 'power']) {
    for (const confirm of ['ask', 'yes']) {
      const form = new URLSearchParams({
        action,
        confirm,
        q: 'canary',
        all: '1',
        power_action: 'off',
      })
      for (const mac of macs) form.append('mac', mac)
      const answer = await anna('/ui/machines/bulk', { method: 'POST', body: form })
      assert.not.match(
        withoutQuery(await answer.text(), `?q=${OUTSIDE}&a=${UNLABELLED}`),
        /canary-/,
      )
    }
  }
  assert.equal(snapshot(server), before)
  assert.ok(server.state.journal !== undefined)
})

const LONGEST = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(letter === 'd' ? 60 : 61))

/** The longest that a name may be. */
const NAME = 'anna'.repeat(16)

test('a scope is labels as machines have them, of a length that a cookie can hold', () => {
  assert.equal(parseScope([' rack 1', 'lab', 'lab ']), { ok: true, value: ['lab', 'rack 1'] })
  assert.equal(parseScope([]), { ok: true, value: [] })
  assert.equal(parseScope(['lab', '']), { ok: false, refusal: 'scope-label' })
  assert.equal(parseScope(['läb']), { ok: false, refusal: 'scope-label' })
  assert.is(JSON.stringify(LONGEST).length, MAX_SCOPE_CHARACTERS)
  assert.ok(parseScope(LONGEST).ok)
  assert.equal(parseScope([...LONGEST, 'y']), { ok: false, refusal: 'scope-long' })
})

test('one label of the scope is enough, nothing is in an empty one, and who administrates has none', () => {
  const reach = ['lab', 'rack-1']
  assert.equal(
    [['lab'], ['x', 'rack-1'], ['Lab'], []].map((labels) => canSee(reach, labels)),
    [true, true, false, false],
  )
  assert.is(canSee([], ['lab']), false)
  assert.is(canSee(null, []), true)
  assert.equal(reachOf({ role: 'operate', labels: reach }), reach)
  assert.is(reachOf({ role: 'administrate', labels: reach }), null)
  assert.ok(isSameReach(['a', 'b'], ['b', 'a']))
  assert.not.ok(isSameReach(['a'], null))
  assert.not.ok(isSameReach([], null))
})

test('the cookie says the scope, and a narrower one counts at the next request', async () => {
  await using server = await createCurrentServer()
  const ask = await addPerson(server, NAME, 'operate')
  const { id = '' } = server.state.peopleStore.findByName(NAME) ?? {}
  assert.is((await ask('/machines')).status, 200)
  const store = server.state.peopleStore
  const accounts = openAccounts(server)
  assert.ok((await accounts.setRights(id, { labels: LONGEST }, BY)).ok)
  assert.is(store.find(id)?.role, 'operate', 'the role stays')
  assert.is((await ask('/machines')).status, 401)
  const again = await server.logIn({ username: NAME, password: 'a password of their own' })
  assert.ok(again.cookie.length <= 'flasher-token='.length + 768, `${again.cookie.length}`)
  const renewed = server.withCookie(again.cookie)
  assert.is((await renewed('/machines')).status, 200)
})

const BY = { actor: 'operator', ip: null } as const

const openAccounts = ({ state: { peopleStore, tokens, journal } }: CurrentServer) =>
  createAccounts({ people: peopleStore, tokens, record: journal.record })

/** What a browser sends of the form of somebody as it stands on the page. */
async function readRights(ask: Ask, id: string) {
  const [, form = ''] = (await (await ask(`/ui/people/${id}`)).text()).split(
    `action="/ui/people/${id}/role"`,
  )
  const [, typed = ''] = /name="labels"[^>]* value="([^"]*)"/.exec(form) ?? []
  const labels = /name="labels" value="-" checked/.test(form) ? '-' : typed
  const [, role = ''] = /<option value="([^"]*)" selected/.exec(form) ?? []
  return { role, labels }
}

type Ask = Awaited<ReturnType<CurrentServer['operator']>>

test('the form of a scope shows what is stored, and saved unchanged it widens nothing', async () => {
  await using server = await createCurrentServer()
  await addPerson(server, 'anna', 'operate', ['lab'])
  const { peopleStore: store } = server.state
  const { id = '' } = store.findByName('anna') ?? {}
  const operator = await server.operator()
  for (const [labels, shown] of [
    [['Lab', 'lab'], 'Lab, lab'],
    [null, ''],
    [[], '-'],
    [[''], '-'],
    [['a,b'], '-'],
    [['a,b', 'lab'], 'lab'],
  ] as const) {
    // The same form of one session would be the other click of a double one.
    const again = await server.operator()
    await store.setRights(id, { labels })
    const fields = await readRights(again, id)
    assert.equal(fields, { role: 'operate', labels: shown })
    assert.is((await again(`/ui/people/${id}/role`, formOf(fields))).status, 303)
    const kept = shown === '-' ? [] : shown === '' ? null : shown.split(', ')
    assert.equal(store.find(id)?.labels, kept, JSON.stringify(labels))
  }
  await operator(`/ui/people/${id}/role`, formOf({ role: 'operate', labels: ' , ' }))
  assert.equal(store.find(id)?.labels, [], 'commas alone are no machine')
  await store.setRights(id, { role: null })
  const fields = await readRights(operator, id)
  assert.is(fields.role, '', 'nobody gets a role that was not chosen')
  await operator(`/ui/people/${id}/role`, formOf(fields))
  assert.is(store.find(id)?.role, null)
})

test('each route of both lines has its expectation, and each expectation its route', async () => {
  await using server = await createCurrentServer()
  await using earlier = await createEarlierServer()
  const routes = [...server.routes, ...earlier.routes]
  assert.equal(listUnmatched(EXPECTED.server, routes), [])
  const differing = routes.filter((route) => {
    const expected = EXPECTED.server.get(nameOf(route))
    return (
      needOf(route) !== expected?.need || (isGated(route) && reachOfRoute(route) !== expected.reach)
    )
  })
  assert.equal(differing.map(nameOf), [])
})

const needOf = ({ access }: Route) => {
  const asked = typeof access === 'function' ? access() : access
  return typeof asked === 'object' ? asked.page : asked
}

test('who is nobody, has no role, who looks and who operates, in a scope too, by session and token, keep to what they may', async () => {
  await using scene = await openCurrentScene()
  const people = ['none-all', 'look-all', 'operate-all', 'operate-lab']
  const names = ['nobody', 'token read', ...people.flatMap((name) => [name, `${name}'s`])]
  const { wrong, asked } = await askEverything(scene, names)
  assert.equal(wrong, [])
  assert.ok(asked > 800, `${asked}`)
})

test.run()
