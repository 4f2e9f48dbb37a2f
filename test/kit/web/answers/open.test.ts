import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { explainSqlite } from '#fleet/state/sqlite.ts'
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

test.run()
