/** People who log in with a name: what their roles let them do, and what ends at their next request. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
  PERSON_PASSWORD as SECRET,
} from '#test/support/people/current-server.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { asJson, readJson } from '#test/support/server/server.ts'

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
  assert.is(told.detail, 'the role look of lea does not permit this')
  const page = await (await asks.operate('/ui/settings')).text()
  assert.match(page, 'It takes the role administrate.')
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

test.run()
