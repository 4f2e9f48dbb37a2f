import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { explainSqlite } from '#fleet/state/sqlite.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const MAC = '52:54:00:12:34:56'
const test = suite('open routes')

test('health and version', async () => {
  await using server = await createTestServer()
  const health = await server.request('/healthz')
  assert.is(health.status, 200)
  assert.is(await health.text(), '{"status":"ok"}')
  assert.equal(await (await server.request('/version')).json(), { version: '1.2.3' })
})

test('a first contact makes a row, a second one keeps its mode', async () => {
  await using server = await createTestServer()
  const answer = await server.request('/pxe/52-54-00-12-34-56')
  assert.is(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', 'text/plain')
  assert.match(await answer.text(), /^#!ipxe\n/)
  const read = await server.operator()
  const machine = await (await read(`/machines/${MAC}`)).json()
  assert.is(machine.boot_mode, 'flasher-inventory')
  assert.is(machine.bty_image_ref, null)
  assert.ok(machine.discovered_at)
  assert.ok(machine.last_seen_at)
  await read(`/machines/${MAC}`, asJson({ boot_mode: 'flasher-tui' }, 'PUT'))
  await server.request(`/pxe/${MAC.toUpperCase()}`)
  assert.is((await (await read(`/machines/${MAC}`)).json()).boot_mode, 'flasher-tui')
  const { events } = await (await read('/events?kind=machine.discovered')).json()
  assert.is(events.length, 1)
  assert.is(events[0].subject_id, MAC)
  assert.is(events[0].actor, 'pxe-client')
})

test('a machine made by PUT is discovered by its first contact', async () => {
  await using server = await createTestServer()
  const read = await server.operator()
  const made = await (await read(`/machines/${MAC}`, asJson({}, 'PUT'))).json()
  assert.is(made.discovered_at, null)
  await server.request(`/pxe/${MAC}`)
  assert.ok((await (await read(`/machines/${MAC}`)).json()).discovered_at)
})

test('many contacts at once discover a machine once', async () => {
  await using server = await createTestServer()
  await Promise.all(Array.from({ length: 20 }, () => server.request(`/pxe/${MAC}`)))
  const found = await server.journal.list({ kind: 'machine.discovered', limit: 50 })
  assert.is(found.length, 1)
})

test('spellings of a MAC', async () => {
  await using server = await createTestServer()
  for (const good of ['aa:bb:cc:dd:ee:ff', 'AA-BB-CC-DD-EE-FF', 'aa%3Abb%3acc:dd-ee:ff']) {
    assert.is((await server.request(`/pxe/${good}`)).status, 200, good)
  }
  for (const bad of [
    'aabbccddeeff',
    'aa:bb:cc:dd:ee',
    'aa:bb:cc:dd:ee:ff:00',
    'x',
    '%20',
    '..%2f',
  ]) {
    const answer = await server.request(`/pxe/${bad}`)
    assert.is(answer.status, 400, bad)
    assert.type((await answer.json()).detail, 'string')
  }
})

test('the bootstrap names the host that was asked', async () => {
  await using server = await createTestServer()
  const script = await (await server.request('/pxe-bootstrap.ipxe')).text()
  assert.match(script, 'chain http://flasher.test:8080/pxe/${net0/mac:hexhyp}')
  const ours = await server.request('/pxe-bootstrap.ipxe?mac=52-54-00-12-34-56')
  assert.match(await ours.text(), 'chain http://flasher.test:8080/pxe/52-54-00-12-34-56')
  const hostile = await server.request('/pxe-bootstrap.ipxe?mac=52-54%0Ashell')
  assert.not.match(await hostile.text(), 'shell')
})

test('public_url stands in for the host', async () => {
  await using server = await createTestServer({
    env: { FLASHER_SERVER_PUBLIC_URL: 'https://boxes.test' },
  })
  const script = await (await server.request('/pxe-bootstrap.ipxe')).text()
  assert.match(script, 'chain https://boxes.test/pxe/')
})

test('plan, inventory, done and status', async () => {
  await using server = await createTestServer()
  assert.is((await server.request(`/pxe/${MAC}/done`, { method: 'POST' })).status, 404)
  assert.is((await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [] }))).status, 404)
  const [orphan] = await server.journal.list({ kind: 'pxe.client.orphan', limit: 5 })
  assert.equal(orphan?.details, { signal: 'inventory' })
  const plan = await (await server.request(`/pxe/${MAC}/plan`)).json()
  assert.is(plan.mode, 'inventory')
  assert.is(plan.plan.mode, 'inventory')
  const disk = { path: '/dev/sda', serial: 'S1', removable: false, readonly: false }
  const posted = await server.request(
    `/pxe/${MAC}/inventory`,
    asJson({ disks: [disk], lshw: { id: 'box' } }),
  )
  assert.is(posted.status, 204)
  assert.is(await posted.text(), '')
  assert.is((await server.request(`/pxe/${MAC}/done`, { method: 'POST' })).status, 204)
  const read = await server.operator()
  const machine = await (await read(`/machines/${MAC}`)).json()
  assert.is(machine.known_disks[0].serial, 'S1')
  assert.ok(machine.last_flashed_at)
  const lshw = await read(`/machines/${MAC}/lshw.json`)
  assert.equal(await lshw.json(), { id: 'box' })
  assert.is(
    lshw.headers.get('content-disposition'),
    'attachment; filename="52-54-00-12-34-56-lshw.json"',
  )
  const failed = await server.request(
    `/pxe/${MAC}/status`,
    asJson({ status: 'failed', reason: 'disk on fire' }),
  )
  assert.is(failed.status, 204)
  for (const bad of [{}, { status: 'maybe' }, { status: 'done', more: 1 }, [], 'x', null]) {
    const answer = await server.request(`/pxe/${MAC}/status`, asJson(bad))
    assert.is(answer.status, 422, JSON.stringify(bad))
    assert.ok(Array.isArray((await answer.json()).detail))
  }
})

test('an inventory without lshw keeps the one before', async () => {
  await using server = await createTestServer()
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [], lshw: { a: 1 } }))
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [] }))
  const huge = { disks: [], lshw: { text: 'x'.repeat(9 * 1024 * 1024) } }
  assert.is((await server.request(`/pxe/${MAC}/inventory`, asJson(huge))).status, 204)
  const read = await server.operator()
  assert.equal(await (await read(`/machines/${MAC}/lshw.json`)).json(), { a: 1 })
})

test('a fault of ours never strands iPXE', async () => {
  await using server = await createTestServer({
    assembly: {
      line: {
        decideBoot() {
          throw new Error('a bug')
        },
      },
    },
  })
  const answer = await server.request(`/pxe/${MAC}`)
  assert.is(answer.status, 200)
  assert.match(await answer.text(), /sanboot/)
  assert.ok(server.log.some((line) => line.includes('a bug')))
})

test('addresses that are no card of one machine are sent to their disk, and make no row', async () => {
  await using server = await createTestServer()
  for (const mac of [
    'ff:ff:ff:ff:ff:ff',
    '00:00:00:00:00:00',
    '01:00:5e:00:00:01',
    '33:33:00:00:00:01',
  ]) {
    const answer = await server.request(`/pxe/${mac}`)
    assert.is(answer.status, 200)
    assert.match(await answer.text(), 'sanboot')
    await server.request(`/pxe/${mac}/plan`)
  }
  assert.is(await server.machines.count(), 0)
})

test('a full disk or a damaged database names no path of the host to who is not logged in', async () => {
  const failures: Readonly<Record<string, () => unknown>> = {
    full: () => new Fault('storage-full', 'no space left in /srv/state (0 MiB free)'),
    broken: () => new Fault('write-failed', '/srv/state/file cannot be written'),
    damaged: () =>
      explainSqlite(Object.assign(new Error('malformed'), { errcode: 11 }), '/srv/state/state.db'),
    busy: () =>
      explainSqlite(Object.assign(new Error('locked'), { errcode: 5 }), '/srv/state/state.db'),
  }
  const routes = Object.entries(failures).flatMap(([name, fail]): Route[] => {
    const handle = () => {
      throw fail()
    }
    return [
      { method: 'GET', path: `/open/${name}`, access: 'open', handle },
      { method: 'GET', path: `/ours/${name}`, access: 'read', handle },
    ]
  })
  await using server = await createTestServer({ routes: () => routes })
  const read = await server.operator()
  const statuses: number[] = []
  for (const name of Object.keys(failures)) {
    const answer = await server.request(`/open/${name}`)
    statuses.push(answer.status)
    assert.not.match(await answer.text(), '/srv', name)
    const ours = await read(`/ours/${name}`)
    assert.is(ours.status, answer.status)
    assert.match(await ours.text(), '/srv/state', name)
  }
  assert.equal(statuses, [507, 500, 500, 503])
  assert.is(server.log.filter((line) => line.includes('/open/') && line.includes('/srv')).length, 4)
})

const PROTECTED = [
  ['GET', '/machines'],
  ['GET', `/machines/${MAC}`],
  ['GET', `/machines/${MAC}/lshw.json`],
  ['GET', `/machines/${MAC}/disks.json`],
  ['PUT', `/machines/${MAC}`],
  ['DELETE', `/machines/${MAC}`],
  ['POST', `/machines/${MAC}/flash`],
  ['POST', '/machines/bulk'],
  ['PUT', '/boot/vmlinuz'],
  ['GET', '/events'],
  ['POST', '/events/1/ack'],
  ['POST', '/events/ack'],
  ['GET', '/events/machines'],
  ['GET', '/tokens'],
  ['POST', '/tokens'],
  ['DELETE', '/tokens/x'],
  ['GET', '/metrics'],
] as const

test('without a session, JSON routes are 401', async () => {
  await using server = await createTestServer()
  for (const [method, path] of PROTECTED) {
    const answer = await server.request(path, { method })
    assert.is(answer.status, 401, `${method} ${path}`)
    assert.equal(await answer.json(), { detail: 'login required' })
    assert.is(answer.headers.get('cache-control'), 'no-store')
  }
  assert.is(await server.machines.count(), 0)
})

test('without a session, pages lead to the login', async () => {
  await using server = await createTestServer()
  const answer = await server.request('/ui/dashboard?q=1')
  assert.is(answer.status, 303)
  assert.is(answer.headers.get('location'), '/ui/login?next=%2Fui%2Fdashboard%3Fq%3D1')
  assert.is(await answer.text(), '')
  const swapped = await server.request('/ui/dashboard', { headers: { 'hx-request': 'true' } })
  assert.is(swapped.headers.get('hx-redirect'), '/ui/login')
  assert.is((await server.request('/ui')).headers.get('location'), '/ui/dashboard')
  assert.is((await server.request('/')).headers.get('location'), '/ui/dashboard')
})

test('unknown paths and methods', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  assert.equal(await (await ask('/nothing/here')).json(), { detail: 'Not Found' })
  const page = await ask('/ui/nothing')
  assert.is(page.status, 404)
  assert.match(page.headers.get('content-type') ?? '', 'text/html')
  const accept = 'text/html,application/xhtml+xml,*/*;q=0.8'
  for (const path of ['/nothing/here', `/machines/${MAC}`, '/runs?limit=x']) {
    const shown = await ask(path, { headers: { accept } })
    assert.ok(shown.status === 404 || shown.status === 422, path)
    assert.match(shown.headers.get('content-type') ?? '', 'text/html', 'a browser went there')
  }
  const posted = await ask('/nothing/here', { method: 'POST', headers: { accept } })
  assert.match(posted.headers.get('content-type') ?? '', 'application/json')
  const stranger = await server.request('/machines', { headers: { accept } })
  assert.is(stranger.status, 401)
  assert.match(stranger.headers.get('content-type') ?? '', 'text/html')
  const rows = [
    ['POST', '/machines', 'GET, HEAD'],
    ['PATCH', `/machines/${MAC}`, 'GET, HEAD, PUT, DELETE'],
    ['GET', '/machines/bulk', 'POST'],
    ['DELETE', '/healthz', 'GET, HEAD, OPTIONS'],
    ['GET', `/pxe/${MAC}/done`, 'POST'],
    ['POST', '/boot/x', 'GET, HEAD, PUT'],
  ] as const
  for (const [method, path, allow] of rows) {
    const answer = await ask(path, { method })
    assert.is(answer.status, 405, path)
    assert.is(answer.headers.get('allow'), allow)
    assert.type((await answer.json()).detail, 'string')
  }
})

/** A plan is given once, and whoever logs in with a provider is sent on once. */
const GET_ALONE = /^\/pxe\/:mac\/plan$|^\/ui\/login\/openid(\/callback|\/finish)?$/

test('HEAD answers wherever GET does, but for plans', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  await server.putBootFile('vmlinuz', 'bytes')
  for (const { method, path, access, answersHead } of server.routes) {
    if (method !== 'GET') continue
    assert.is(answersHead === false, GET_ALONE.test(path), path)
    if (answersHead === false) continue
    const target = path.replace(':mac', MAC).replace(':name', 'vmlinuz')
    const answer = await ask(target, { method: 'HEAD' })
    const expected = await ask(target)
    if (path.endsWith('/events/machines')) await expected.body?.cancel()
    else await expected.arrayBuffer()
    assert.is(answer.status, expected.status, `${path} ${String(access)}`)
    assert.is(await answer.text(), '', path)
  }
})

test('every answer carries its headers', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const path of [
    '/healthz',
    '/machines',
    '/nothing',
    '/ui/login',
    '/docs/api',
    '/boot/none',
  ]) {
    const { headers } = await ask(path)
    assert.is(headers.get('x-content-type-options'), 'nosniff', path)
    const policy = headers.get('content-security-policy') ?? ''
    assert.match(policy, "frame-ancestors 'none'")
    assert.not.match(policy, 'unsafe')
    assert.ok(headers.get('referrer-policy'))
  }
  const login = (await server.request('/ui/login')).headers
  assert.is(login.get('cross-origin-opener-policy'), 'same-origin')
  assert.is(login.get('cache-control'), 'no-store')
})

test('tokens pass with their scopes, and are shown once', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const made = await ask('/tokens', asJson({ name: 'ci', scopes: ['read', 'flash'] }))
  assert.is(made.status, 201)
  const { token, id } = await made.json()
  const as = (path: string, init: RequestInit = {}, bearer = token) =>
    server.request(path, {
      ...init,
      headers: { ...init.headers, authorization: `Bearer ${bearer}` },
    })
  assert.is((await as('/machines')).status, 200)
  assert.is((await as(`/machines/${MAC}`, asJson({}, 'PUT'))).status, 403)
  assert.is((await as('/tokens')).status, 403)
  assert.is((await as('/ui/dashboard')).status, 303)
  assert.is((await as('/machines', {}, `${token}x`)).status, 401)
  assert.is((await as('/machines', {}, '')).status, 401)
  const bulk = asJson({ action: 'delete', macs: [MAC] })
  assert.is((await as('/machines/bulk', bulk)).status, 403)
  const [listed] = await (await ask('/tokens')).json()
  assert.is(listed.name, 'ci')
  assert.not.match(JSON.stringify(listed), token)
  assert.ok(listed.last_used_at)
  assert.is((await ask('/tokens', asJson({ name: 'ci', scopes: ['read'] }))).status, 409)
  assert.is((await ask('/tokens', asJson({ name: 'x', scopes: ['root'] }))).status, 422)
  assert.is((await ask(`/tokens/${id}`, { method: 'DELETE' })).status, 204)
  assert.is((await as('/machines')).status, 401)
  assert.is((await ask(`/tokens/${id}`, { method: 'DELETE' })).status, 404)
  const events = await server.journal.list({ text: 'token', limit: 10 })
  assert.not.match(JSON.stringify(events), token)
})

test('a token is the actor of what it does', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const { token } = await (
    await ask('/tokens', asJson({ name: 'rack script', scopes: ['machines'] }))
  ).json()
  const put = asJson({}, 'PUT')
  const headers = { ...put.headers, authorization: `Bearer ${token}` }
  assert.is((await server.request(`/machines/${MAC}`, { ...put, headers })).status, 200)
  const [created] = await server.journal.list({ kind: 'machine.created', limit: 1 })
  assert.is(created?.actor, 'token:rack script')
})

test('events: filters, paging, acknowledging', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (let n = 0; n < 5; n++)
    await server.request(`/pxe/52:54:00:00:00:0${n}/done`, { method: 'POST' })
  const first = await (await ask('/events?kind=pxe.client.orphan&limit=2')).json()
  assert.is(first.events.length, 2)
  const next = await ask(`/events?kind=pxe.client.orphan&before_id=${first.events[1].id}`)
  assert.is((await next.json()).events.length, 3)
  const { id } = first.events[0]
  const acked = await ask(`/events/${id}/ack`, { method: 'POST' })
  assert.equal(await acked.json(), { id, acknowledged: true })
  assert.is((await ask('/events/999999/ack', { method: 'POST' })).status, 404)
  assert.is((await ask('/events/x/ack', { method: 'POST' })).status, 404)
  const bulk = await ask('/events/ack', asJson({ ids: [id, 999_999], acknowledged: false }))
  assert.equal(await bulk.json(), { updated: 1, acknowledged: false })
  for (const bad of ['limit=0', 'limit=501', 'limit=x', 'before_id=-1']) {
    assert.is((await ask(`/events?${bad}`)).status, 422, bad)
  }
})

test('metrics name no machine', async () => {
  await using server = await createTestServer({ env: { FLASHER_METRICS_OPEN: 'true' } })
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/plan`)
  const answer = await server.request('/metrics')
  assert.is(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', 'version=0.0.4')
  const text = await answer.text()
  assert.match(text, 'flasher_pxe_requests_total{mode="flasher-inventory",offer="disks-wanted"} 1')
  assert.match(text, 'flasher_plan_requests_total{mode="inventory"} 1')
  assert.match(text, 'flasher_machines{mode="flasher-inventory"} 1')
  assert.match(text, /flasher_http_request_seconds_bucket\{method="GET",route="\/pxe\/:mac"/)
  assert.not.match(text, '52:54')
  for (const line of text.trimEnd().split('\n')) {
    assert.match(line, /^(# (HELP|TYPE) .+|[a-z_]+(\{([a-z]+="[^"]*",?)*\})? -?[\d.e+-]+)$/)
  }
  server.set({ FLASHER_METRICS_OPEN: 'false' })
  assert.is((await server.request('/metrics')).status, 401)
})

test('the API document names every route that is no page', async () => {
  await using server = await createTestServer()
  const answer = await server.request('/openapi.json')
  const document = await answer.json()
  assert.is(document.openapi, '3.1.0')
  for (const { method, path, doc } of server.routes) {
    if (doc === undefined) continue
    const entry = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()]
    assert.is(entry?.summary, doc.summary, `${method} ${path}`)
  }
  const names = JSON.stringify(document).matchAll(/#\/components\/schemas\/(\w+)/g)
  for (const [, name = ''] of names) assert.ok(document.components.schemas[name], name)
  assert.not.match(JSON.stringify(document.paths), '$schema')
  const page = await (await server.request('/docs/api')).text()
  assert.match(page, 'PUT /machines/:mac')
  assert.not.match(page, /https?:\/\//)
})

test('an invalid query is reported as a fault of the query', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const [path, field] of [
    ['/events?limit=many', 'limit'],
    ['/runs?since=x', 'since'],
    ['/runs.csv?mac=x', 'mac'],
  ]) {
    const answer = await ask(path ?? '')
    assert.is(answer.status, 422)
    const { detail } = await answer.json()
    assert.equal(detail[0].loc, ['query', field])
  }
})

test('boot files by the thousand are a few series of metrics', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (let n = 0; n < 200; n++) {
    await server.putBootFile(`file-${n}`, 'x')
    assert.is((await server.request(`/boot/file-${n}`)).status, 200)
  }
  const lines = (await (await ask('/metrics')).text())
    .split('\n')
    .filter((line) => line.startsWith('flasher_boot_bytes_total{'))
  assert.ok(lines.length <= 51, `${lines.length} series`)
  assert.ok(lines.includes('flasher_boot_bytes_total{name="other"} 150'), lines.at(-1))
})

test.run()
