/** People who log in with a name: what their roles let them do, and what ends at their next request. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideGate,
  type PageScope,
  type Role,
  SCOPES,
  scopesOf,
} from '#kit/web/answers/rules/rights.ts'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
  PERSON_PASSWORD as SECRET,
  PERSON_PASSWORD,
} from '#test/support/people/current-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('people')

const MAC = '52:54:00:00:00:01'
const NEW_PASSWORD = 'another password of theirs'

const idOf = (server: CurrentServer, name: string) =>
  server.state.peopleStore.findByName(name)?.id ?? ''

test('without people the login is the one of the specification, whatever name comes along', async () => {
  await using server = await createCurrentServer()
  assert.not.match(
    await (await server.request('/ui/login')).text(),
    /name="username"[^>]*type="text"/,
  )
  for (const username of ['', 'administrator', 'somebody']) {
    assert.is((await server.logIn({ username, password: PASSWORD })).status, 303, username)
  }
  assert.is((await server.logIn({ password: 'wrong' })).status, 401)
})

test('each role passes where it may, and learns what it lacks', async () => {
  await using server = await createCurrentServer()
  const machine = [`/machines/${MAC}`, asJson({ labels: ['lab'] }, 'PUT')] as const
  await (
    await server.operator()
  )(...machine)
  const asks = {
    look: await addPerson(server, 'lea', 'look'),
    operate: await addPerson(server, 'otto', 'operate'),
    administrate: await addPerson(server, 'anna', 'administrate'),
  }
  const statuses = async (path: string, init: RequestInit = {}) => [
    (await asks.look(path, init)).status,
    (await asks.operate(path, init)).status,
    (await asks.administrate(path, init)).status,
  ]
  assert.equal(await statuses('/machines'), [200, 200, 200])
  assert.equal(await statuses('/ui/machines'), [200, 200, 200])
  assert.equal(await statuses('/ui/account'), [200, 200, 200])
  assert.equal(await statuses(...machine), [403, 200, 200])
  assert.equal(await statuses(`/ui/machines/${MAC}/do/lock`, { method: 'POST' }), [403, 303, 303])
  const bulk = asJson({ action: 'lock', macs: [MAC], dry_run: true })
  assert.equal(await statuses('/machines/bulk', bulk), [403, 200, 200])
  assert.equal(await statuses('/tokens'), [200, 200, 200])
  assert.equal(await statuses('/tokens', asJson({ name: 'x', scopes: ['read'] })), [403, 403, 201])
  assert.equal(await readJson(asks.operate('/tokens')), [], 'people see their own')
  assert.equal(await statuses('/ui/settings'), [403, 403, 200])
  assert.equal(await statuses('/ui/people'), [403, 403, 200])
  assert.equal(await statuses('/ui/people', asForm({ name: 'x' })), [403, 403, 303])
  const told = await (await asks.look(...machine)).json()
  assert.is(told.detail, 'you need the role Operator to do this')
  const people = await (await asks.administrate('/ui/people/provider')).text()
  assert.match(people, '/ui/login/openid/callback')
  const page = await (await asks.operate('/ui/settings')).text()
  assert.match(page, /[Yy]ou need the role Administrator to do this/)
  const shown = await (await asks.look('/ui/dashboard')).text()
  assert.match(shown, 'data-role="look"')
  assert.not.match(shown, 'href="/ui/settings"')
  assert.match(await (await asks.administrate('/ui/dashboard')).text(), 'href="/ui/settings"')
})

test('each role undoes, pauses, disarms and tries again what it may', async () => {
  await using server = await createCurrentServer()
  const operator = await server.operator()
  const asks = [
    await addPerson(server, 'lea', 'look'),
    await addPerson(server, 'otto', 'operate'),
    await addPerson(server, 'anna', 'administrate'),
  ]
  const make = async (scopes: readonly string[]) => {
    const { token } = await (
      await operator('/tokens', asJson({ name: scopes.join('-'), scopes }))
    ).json()
    return (path: string, init: RequestInit = {}) =>
      server.request(path, { ...init, headers: { authorization: `Bearer ${token}` } })
  }
  const tokens = [await make(['read', 'power']), await make(['machines']), await make(['flash'])]
  await operator(`/machines/${MAC}`, asJson({ labels: ['lab'] }, 'PUT'))
  const { batch } = await readJson(
    operator('/machines/bulk', asJson({ action: 'lock', macs: [MAC] })),
  )
  const post = { method: 'POST' }
  const statuses = async (path: string, callers: typeof asks) => {
    const found: number[] = []
    for (const ask of callers) found.push((await ask(path, post)).status)
    return found
  }
  for (const action of ['pause', 'disarm']) {
    assert.equal(await statuses(`/batches/${batch}/${action}`, asks), [403, 200, 200], action)
    assert.equal(await statuses(`/ui/batches/${batch}/${action}`, asks), [403, 303, 303], action)
    assert.equal(await statuses(`/batches/${batch}/${action}`, tokens), [403, 200, 403], action)
  }
  for (const action of ['resume', 'retry']) {
    assert.equal(await statuses(`/batches/${batch}/${action}`, asks), [403, 200, 200], action)
    assert.equal(await statuses(`/ui/batches/${batch}/${action}`, asks), [403, 200, 200], action)
    assert.equal(await statuses(`/batches/${batch}/${action}`, tokens), [403, 403, 200], action)
  }
  // Nobody undoes by the API what somebody else did.
  assert.equal(await statuses(`/machines/${MAC}/undo`, asks), [403, 409, 409])
  assert.equal(await statuses(`/machines/${MAC}/undo`, tokens), [403, 409, 403])
  assert.equal(await statuses(`/ui/machines/${MAC}/undo`, asks), [403, 303, 303])
  assert.equal(await statuses(`/batches/${batch}/undo`, tokens), [403, 200, 403])
  assert.equal(await statuses(`/batches/${batch}/undo`, asks), [403, 200, 200])
  assert.equal(await statuses(`/ui/batches/${batch}/undo`, asks), [403, 303, 303])
})

test('a role, a password or a person that is taken away ends sessions at the next request', async () => {
  await using server = await createCurrentServer()
  const operator = await server.operator()
  const change = async (name: string, what: string, fields: Record<string, string>) =>
    assert.is(
      (await operator(`/ui/people/${idOf(server, name)}/${what}`, asForm(fields))).status,
      303,
    )
  const ask = await addPerson(server, 'anna', 'administrate')
  const other = await addPerson(server, 'otto', 'operate')
  const status = async () => (await ask('/machines')).status
  assert.is(await status(), 200)
  await change('anna', 'role', { role: 'look' })
  assert.is(await status(), 401)
  const again = await server.logIn({ username: 'anna', password: SECRET })
  const look = server.withCookie(again.cookie)
  assert.equal([(await look('/machines')).status, (await look('/ui/people')).status], [200, 403])
  await change('anna', 'password', { password: NEW_PASSWORD })
  assert.is((await look('/machines')).status, 401)
  assert.is((await server.logIn({ username: 'anna', password: SECRET })).status, 401)
  const fresh = await server.logIn({ username: ' ANNA ', password: NEW_PASSWORD })
  assert.is((await server.withCookie(fresh.cookie)('/machines')).status, 200)
  await change('anna', 'remove', { confirm: 'yes' })
  assert.is((await server.withCookie(fresh.cookie)('/machines')).status, 401)
  assert.is((await server.logIn({ username: 'anna', password: NEW_PASSWORD })).status, 401)
  assert.is((await other('/machines')).status, 200, 'nobody else is logged out')
})

test('who changes their own password stays logged in where they did, and nowhere else', async () => {
  await using server = await createCurrentServer()
  const ask = await addPerson(server, 'anna', 'look')
  const elsewhere = server.withCookie(
    (await server.logIn({ username: 'anna', password: SECRET })).cookie,
  )
  const fields = { current: SECRET, password: NEW_PASSWORD, repeated: NEW_PASSWORD }
  const wrong = await ask('/ui/account/password', asForm({ ...fields, current: PASSWORD }))
  assert.match(wrong.headers.get('location') ?? '', 'error=')
  const changed = await ask('/ui/account/password', asForm(fields))
  assert.is(changed.headers.get('location'), '/ui/account?changed=password')
  const cookie = changed.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  assert.is((await server.withCookie(cookie)('/machines')).status, 200)
  assert.equal([(await ask('/machines')).status, (await elsewhere('/machines')).status], [401, 401])
  assert.is(
    (await server.logIn({ password: PASSWORD })).status,
    303,
    'the administrator is another',
  )
})

test('tokens belong to a person: never more rights than theirs, and none once they are gone', async () => {
  await using server = await createCurrentServer()
  const operator = await server.operator()
  const ask = await addPerson(server, 'otto', 'operate')
  const make = async (name: string, scopes: string) => {
    const form = new URLSearchParams({ name, scopes, days: '30' })
    return await ask('/ui/account/tokens', { method: 'POST', body: form })
  }
  assert.match((await make('no', 'admin')).headers.get('location') ?? '', 'error=')
  const token = /flasher_\w+_[\w-]+/.exec(await (await make('ci', 'machines')).text())?.[0] ?? ''
  const withToken = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    return server.request(path, { ...init, headers })
  }
  const put = () => withToken(`/machines/${MAC}`, asJson({ labels: [] }, 'PUT'))
  assert.is((await put()).status, 200)
  const [event] = await server.state.journal.list({
    person: 'otto',
    kind: 'machine.created',
    limit: 1,
  })
  assert.is(event?.actor, 'token:ci@otto')
  const [listed] = await readJson(operator('/tokens'))
  assert.equal([listed.name, listed.owner], ['ci', 'otto'])
  await operator('/tokens', asJson({ name: 'nightly', scopes: ['read'] }))
  assert.equal(await readJson(ask('/tokens')), [listed])
  assert.is((await withToken('/tokens')).status, 403, 'a program sees none')
  await operator(`/ui/people/${idOf(server, 'otto')}/role`, asForm({ role: 'look' }))
  assert.is((await put()).status, 403)
  await operator(`/ui/people/${idOf(server, 'otto')}/role`, asForm({ role: 'operate' }))
  assert.is((await put()).status, 200)
  await operator(`/ui/people/${idOf(server, 'otto')}/remove`, asForm({ confirm: 'yes' }))
  assert.is((await put()).status, 401)
  const [left, ...others] = await readJson(operator('/tokens'))
  assert.equal([left.name, others], ['nightly', []])
})

test('the login without a name can be switched off, and never locks everybody out', async () => {
  await using server = await createCurrentServer({ FLASHER_PEOPLE_NAMELESS_LOGIN: 'off' })
  await addPerson(server, 'otto', 'operate')
  assert.is((await server.logIn({ password: PASSWORD })).status, 303, 'nobody else administrates')
  await addPerson(server, 'anna', 'administrate')
  const refused = await server.logIn({ password: PASSWORD })
  assert.is(refused.status, 401)
  assert.match(refused.text, 'Enter your name.')
  assert.is((await server.logIn({ username: 'anna', password: PASSWORD })).status, 401)
  assert.is((await server.logIn({ username: 'nobody', password: SECRET })).status, 401)
})

test('what was erased last week, and who had it done, is one address', async () => {
  await using server = await createCurrentServer()
  const ask = await addPerson(server, 'otto', 'operate')
  await ask(
    `/machines/${MAC}`,
    asJson({ boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }, 'PUT'),
  )
  const run = bodyOf({ run: runIdOf(1), phase: 'write', image: { name: 'debian.img' } })
  assert.is((await server.request(`/pxe/${MAC}/progress`, asJson(run))).status, 204)
  const { events } = await readJson(ask('/events?erased=1&person=otto'))
  assert.equal(
    events.map(({ kind, details }: { kind: string; details: { armed_by: string } }) => [
      kind,
      details.armed_by,
    ]),
    [['machine.flash_started', 'person:otto']],
  )
  assert.equal((await readJson(ask('/events?erased=1&person=anna'))).events, [])
  const { events: mine } = await readJson(ask('/events?person=otto'))
  assert.ok(mine.some(({ actor }: { actor: string }) => actor === 'person:otto'))
  assert.not.ok(mine.some(({ actor }: { actor: string }) => actor === 'operator'))
  const page = await (await ask('/ui/events?erased=1')).text()
  assert.match(page, 'armed by <a href="/ui/events?erased=1&amp;person=otto">otto</a>')
  const [first] = server.state.runs.list({ limit: 1 })
  assert.is(first?.run.armed_by?.actor, 'person:otto')
})

test('the gate lets nobody do what their role does not say', () => {
  const wanted: readonly PageScope[] = [...SCOPES, 'own']
  const passes = (role: Role | null) =>
    wanted.filter((each) => decideGate({ kind: 'person', name: 'anna', role }, each) === null)
  assert.equal(passes(null), ['own'])
  assert.equal(passes('look'), ['read', 'own'])
  assert.equal(passes('operate'), ['read', 'machines', 'flash', 'power', 'own'])
  assert.equal(passes('administrate'), wanted)
  for (const scope of SCOPES) {
    const scopes = [scope]
    const open = SCOPES.filter((each) => decideGate({ kind: 'token', scopes }, each) === null)
    assert.equal(open, scope === 'admin' ? SCOPES : [scope])
  }
  assert.is(decideGate({ kind: 'token', scopes: SCOPES }, 'own')?.why, 'forbidden')
  assert.is(decideGate({ kind: 'administrator' }, 'admin'), null)
  assert.equal(scopesOf(null), [])
})

test('who logs in with a name guesses the password of somebody else no faster', async () => {
  await using server = await createCurrentServer()
  await addPerson(server, 'lea', 'look')
  const logIn = async (username: string, password: string) =>
    (await server.logIn({ username, password })).status
  for (let times = 0; times < 3; times += 1) {
    assert.is(await logIn('', `guess ${times}`), 401)
    assert.is(await logIn('lea', PERSON_PASSWORD), 303, 'a slip of others costs nothing')
  }
  assert.is(await logIn('', 'guess 4'), 401)
  assert.is(await logIn('lea', PERSON_PASSWORD), 429, 'now the address waits')
})

test('who changes their own password while their role is taken away does not keep it', async () => {
  await using server = await createCurrentServer()
  const anna = await addPerson(server, 'anna', 'administrate')
  const next = 'another password of theirs'
  const { id = '' } = server.state.peopleStore.findByName('anna') ?? {}
  const operator = await server.operator()
  const fields = { current: PERSON_PASSWORD, password: next, repeated: next }
  const [changed] = await Promise.all([
    anna('/ui/account/password', asForm(fields)),
    operator(`/ui/people/${id}/role`, asForm({ role: 'look' })),
  ])
  const cookie = changed.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const fresh = server.withCookie(cookie)
  assert.equal([(await fresh('/machines')).status, (await fresh('/ui/people')).status], [200, 403])
})

test('without the login without a name, a session that a cache with the same key opened is none', async () => {
  await using server = await createCurrentServer({ FLASHER_PEOPLE_NAMELESS_LOGIN: 'off' })
  const operator = await server.operator()
  assert.is((await operator('/machines')).status, 200)
  await addPerson(server, 'anna', 'administrate')
  assert.is((await operator('/machines')).status, 401)
  const { id = '' } = server.state.peopleStore.findByName('anna') ?? {}
  await server.state.peopleStore.remove(id)
  assert.is((await operator('/machines')).status, 200, 'nobody is shut out')
  assert.is((await server.logIn({ password: PASSWORD })).status, 303)
})

const MACS = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03']

type End = readonly [string, Readonly<Record<string, string>>]

/** A change by an administrator, as a form of the page of somebody. */
const ENDS: Readonly<Record<string, End>> = {
  'who was removed': ['remove', { confirm: 'yes' }],
  'who may only look by now': ['role', { role: 'look' }],
  'whose scope has none of the machines by now': ['role', { role: 'operate', labels: 'office' }],
}

async function createScene() {
  const server = await createCurrentServer({ FLASHER_POWER_NETWORKS: '127.0.0.0/8' })
  const operator = await server.operator()
  for (const mac of MACS) {
    const body = asJson({ labels: ['lab'], bty_image_ref: REF, target_disk_serial: 'S1' }, 'PUT')
    assert.is((await operator(`/machines/${mac}`, body)).status, 200)
    // Nothing listens there: what is tried is an event at once.
    const way = { way: 'hook', on: 'http://127.0.0.1:9/on', off: 'http://127.0.0.1:9/off' }
    assert.is((await operator(`/machines/${mac}/power`, asJson(way, 'PUT'))).status, 200)
  }
  const otto = await addPerson(server, 'otto', 'operate', ['lab'])
  const id = server.state.peopleStore.findByName('otto')?.id ?? ''
  const end = async ([path, fields]: End) => {
    const { status } = await operator(`/ui/people/${id}/${path}`, asForm(fields))
    assert.is(status, 303)
  }
  return { server, operator, otto, end, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

const listEvents = async ({ state }: CurrentServer, kind: string) =>
  (await state.journal.list({ kind, limit: 50 })).map(({ summary }) => summary)

for (const [what, end] of Object.entries(ENDS)) {
  test(`a batch of somebody ${what} is paused, says why, and goes on with somebody else`, async () => {
    await using scene = await createScene()
    const { server, operator, otto } = scene
    const parameters = { boot_mode: 'flasher-flash-once' }
    const { batch } = await readJson(
      otto('/machines/bulk', asJson({ action: 'mode', macs: MACS, parameters })),
    )
    const isPaused = async () => server.state.batches.isPaused(batch)
    assert.is(await isPaused(), false)
    await scene.end(end)
    await waitUntil(isPaused, () => 'it is paused')
    await waitUntil(
      async () => (await listEvents(server, 'batch.pause')).length === 1,
      () => 'it is on record',
    )
    const [said = ''] = await listEvents(server, 'batch.pause')
    assert.match(
      said,
      /^Paused \d machines.*, as (otto was removed|otto may no longer do this|it has machines that)/,
    )
    assert.is((await operator(`/batches/${batch}/resume`, { method: 'POST' })).status, 200)
    assert.is(server.state.batches.find(batch)?.resumed_by, 'operator', 'who answers for it now')
  })

  test(`the power of machines is left alone that were still to come, for somebody ${what}`, async () => {
    await using scene = await createScene()
    const { server, otto } = scene
    const begun = asJson({ action: 'on', macs: MACS, stagger: 2 })
    assert.is((await readJson(otto('/power/bulk', begun))).started, 3)
    await scene.end(end)
    const words = () => listEvents(server, 'machine.power.failed')
    await waitUntil(
      async () => (await words()).some((each) => /may not change it|before the power/.test(each)),
      () => 'it is on record',
    )
    const tried = (await words()).filter((each) => each.startsWith(MACS[1] ?? '-'))
    assert.ok(
      tried.every((each) => each.includes('may not change it')),
      tried.join(),
    )
  })
}

test('what goes on is on a page, with its button, and is stopped there', async () => {
  await using scene = await createScene()
  const { server, operator, otto } = scene
  await readJson(otto('/power/bulk', asJson({ action: 'on', macs: MACS, stagger: 600 })))
  const shown = await (await operator('/ui/batches')).text()
  assert.match(shown, 'of 3 machines to go, started by otto')
  const [, path = ''] = /action="(\/ui\/batches\/power\/\w+\/stop)"/.exec(shown) ?? []
  const lea = await addPerson(server, 'lea', 'look')
  assert.is((await lea(path, { method: 'POST' })).status, 403)
  assert.not.match(await (await lea('/ui/batches')).text(), path)
  const other = await addPerson(server, 'ria', 'operate', ['office'])
  assert.not.match(await (await other('/ui/batches')).text(), 'begun by otto')
  assert.match((await other(path, { method: 'POST' })).headers.get('location') ?? '', 'error=')
  assert.is((await operator(path, { method: 'POST' })).status, 303)
  await waitUntil(
    async () =>
      (await listEvents(server, 'machine.power.failed')).some((each) =>
        each.includes('stopped it'),
      ),
    () => 'it is on record',
  )
  assert.not.match(await (await operator('/ui/batches')).text(), 'begun by otto')
})

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

test('a token makes none that outlives or outranks it', async () => {
  await using scene = await createScene()
  const { server, operator } = scene
  const wish = { name: 'short', scopes: ['admin'], expires_at: inSeconds(60) }
  const { token } = await (await operator('/tokens', asJson(wish))).json()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const make = async (more: object) => {
    const body = JSON.stringify({ name: 'child', scopes: ['admin'], ...more })
    return await server.request('/tokens', { method: 'POST', headers, body })
  }
  assert.equal(
    [(await make({})).status, (await make({ expires_at: inSeconds(61) })).status],
    [422, 422],
  )
  const child = await (await make({ expires_at: inSeconds(30) })).json()
  const use = (text: string) =>
    server.request('/tokens', { headers: { authorization: `Bearer ${text}` } })
  assert.is((await use(child.token)).status, 200)
  const [made] = (await readJson(operator('/tokens'))).filter(
    ({ name }: { name: string }) => name === 'short',
  )
  assert.is((await operator(`/tokens/${made.id}`, { method: 'DELETE' })).status, 204)
  assert.equal([(await use(token)).status, (await use(child.token)).status], [401, 401])
})

test.run()
