import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { replaceSecret } from '#kit/web/access/secret.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { asJson, createTestServer, listen, type TestServer } from '#test/support/server/server.ts'

const PATH = '/events/machines'
const macOf = (n: number) => `52:54:00:00:${hex(n >> 8)}:${hex(n & 255)}`
const hex = (n: number) => n.toString(16).padStart(2, '0')
const rowsIn = (data: string) => data.match(/<tr /g)?.length ?? 0
const test = suite('live channel')

/** Waits for what happens within moments; nothing is decided by how long that took. */
async function eventually(isSo: () => boolean): Promise<void> {
  for (let tries = 0; !isSo(); tries++) {
    if (tries > 3000) throw new Error('it never came to be')
    await sleep(20)
  }
}

test('the whole table on connect, and after each change', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await ask(`/machines/${macOf(1)}`, asJson({}, 'PUT'))
  const answer = await ask(PATH)
  assert.is(answer.status, 200)
  assert.is(answer.headers.get('content-type'), 'text/event-stream')
  assert.match(answer.headers.get('cache-control') ?? '', 'no-store')
  const events = readEvents(answer)
  const first = await events.next()
  assert.is(first?.name, 'machines-update')
  assert.match(first?.data ?? '', /^<tr id="m-52:54:00:00:00:01">.*<\/tr>$/)
  await ask(`/machines/${macOf(2)}`, asJson({ boot_mode: 'flasher-tui' }, 'PUT'))
  const second = await events.next()
  assert.is(rowsIn(second?.data ?? ''), 2)
  assert.match(second?.data ?? '', 'flasher-tui')
  await server.request(`/pxe/${macOf(3)}`)
  assert.ok(await events.until(({ data }) => rowsIn(data) === 3))
  await ask(`/machines/${macOf(1)}`, { method: 'DELETE' })
  assert.ok(await events.until(({ data }) => rowsIn(data) === 2))
  for (const n of [2, 3]) await ask(`/machines/${macOf(n)}`, { method: 'DELETE' })
  assert.ok(await events.until(({ data }) => data === ''))
  await events.close()
})

test('a burst of changes is a few events, and the last is the newest state', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const events = readEvents(await ask(PATH))
  await events.next()
  for (let n = 0; n < 200; n++) {
    await ask(`/machines/${macOf(1)}`, asJson({ labels: [`l${n}`] }, 'PUT'))
  }
  await ask(`/machines/${macOf(2)}`, asJson({}, 'PUT'))
  let count = 0
  await events.until(({ data }) => {
    count += 1
    return rowsIn(data) === 2
  })
  assert.ok(count < 100, `${count} events`)
  await events.close()
})

test('rows are rendered when they change, whoever looks', async () => {
  let rendered = 0
  await using server = await createTestServer({
    views: {
      renderRow({ mac }) {
        rendered += 1
        return `<tr id="m-${mac}"></tr>`
      },
    },
  })
  const ask = await server.operator()
  for (let n = 0; n < 50; n++) await ask(`/machines/${macOf(n)}`, asJson({}, 'PUT'))
  const readers = await Promise.all(
    Array.from({ length: 10 }, async () => readEvents(await ask(PATH))),
  )
  await Promise.all(readers.map((reader) => reader.next()))
  assert.is(rendered, 50)
  await ask(`/machines/${macOf(7)}`, asJson({ labels: ['new'] }, 'PUT'))
  await Promise.all(readers.map((reader) => reader.next()))
  assert.is(rendered, 51)
  await Promise.all(readers.map((reader) => reader.close()))
})

test('a page gets what it shows: at most a hundred rows', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (let n = 0; n < 250; n++) await ask(`/machines/${macOf(n)}`, asJson({}, 'PUT'))
  const rowsOf = async (query: string) => {
    const events = readEvents(await ask(`${PATH}${query}`))
    const first = await events.next()
    await events.close()
    return rowsIn(first?.data ?? '')
  }
  assert.is(await rowsOf(''), 250)
  assert.is(await rowsOf('?page=1'), 100)
  assert.is(await rowsOf('?page=3'), 50)
  assert.is(await rowsOf('?page=99'), 50)
  assert.is(await rowsOf('?page=-1'), 100)
  assert.is(await rowsOf('?q=52:54:00:00:00:07'), 1)
  assert.is(await rowsOf('?q=nothing'), 0)
})

test('a hundred pages all end with the newest state', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  const cookie = await logIn(server)
  const readers = await Promise.all(
    Array.from({ length: 100 }, async (_, n) => {
      const query = n % 2 === 0 ? '' : `?page=1&n=${n % 10}`
      return readEvents(await fetch(`${http.url}${PATH}${query}`, { headers: { cookie } }))
    }),
  )
  const storm = Array.from({ length: 300 }, (_, n) => server.request(`/pxe/${macOf(n % 90)}`))
  await Promise.all(storm)
  await server.request('/pxe/52:54:00:ff:ff:ff')
  const last = await Promise.all(
    readers.map((reader) => reader.until(({ data }) => rowsIn(data) === 91)),
  )
  assert.ok(last.every((event) => event !== null))
  await Promise.all(readers.map((reader) => reader.close()))
  await eventually(() => server.listeners() === 0)
})

test('who does not read is dropped, holds no memory, and delays nobody', async () => {
  let time = Date.now()
  const row = `<td>${'x'.repeat(20_000)}</td>`
  await using server = await createTestServer({
    now: () => new Date(time),
    views: { renderRow: ({ mac, updated_at }) => `<tr id="m-${mac}">${updated_at}${row}</tr>` },
  })
  await using http = await listen(server)
  const cookie = await logIn(server)
  const ask = await server.operator()
  for (let n = 0; n < 100; n++) await ask(`/machines/${macOf(n)}`, asJson({}, 'PUT'))
  const deaf = Array.from({ length: 10 }, () => {
    const socket = createConnection({ port: http.port, host: '127.0.0.1' })
    socket.on('error', () => {})
    socket.pause()
    socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`)
    return socket
  })
  try {
    await eventually(() => server.listeners() === 10)
    const events = readEvents(await fetch(`${http.url}${PATH}`, { headers: { cookie } }))
    await events.next()
    const before = process.memoryUsage()
    for (let n = 0; n < 10; n++) {
      time += 50
      await ask(`/machines/${macOf(0)}`, asJson({ labels: [`l${n}`] }, 'PUT'))
      await events.next()
    }
    const after = process.memoryUsage()
    // Ten snapshots of 2 MB for each of ten would be 200 MB.
    const grown = after.arrayBuffers + after.external - before.arrayBuffers - before.external
    assert.ok(grown < 100_000_000, `${grown} bytes more`)
    time += 16_000
    await ask(`/machines/${macOf(1)}`, asJson({ labels: ['late'] }, 'PUT'))
    await eventually(() => server.listeners() === 1)
    assert.ok(await events.until(({ data }) => rowsIn(data) === 100))
    await events.close()
  } finally {
    for (const socket of deaf) socket.destroy()
  }
})

test('a comment keeps a silent channel open', async () => {
  let time = Date.now()
  await using server = await createTestServer({ now: () => new Date(time) })
  const ask = await server.operator()
  const events = readEvents(await ask(PATH))
  await events.next()
  const next = events.next()
  time += 21_000
  await eventually(() => events.comments() === 1)
  await ask(`/machines/${macOf(1)}`, asJson({}, 'PUT'))
  await next
  assert.is(events.comments(), 1)
  await events.close()
})

test('one stream serves several pages, each under its number', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const n of [1, 2]) await ask(`/machines/${macOf(n)}`, asJson({}, 'PUT'))
  const views = [`q=${macOf(1)}`, '', `q=${macOf(2)}`]
  const query = new URLSearchParams(views.map((view) => ['view', view]))
  const events = readEvents(await ask(`${PATH}?${query.toString()}`))
  const first = [await events.next(), await events.next(), await events.next()]
  const seen = new Map(first.map((event) => [event?.name, rowsIn(event?.data ?? '')]))
  const names = ['machines-update.0', 'machines-update.1', 'machines-update.2']
  assert.equal(
    names.map((name) => seen.get(name)),
    [1, 2, 1],
  )
  assert.is(server.listeners(), 1)
  await ask(`/machines/${macOf(2)}`, asJson({ labels: ['new'] }, 'PUT'))
  assert.ok(await events.until(({ name }) => name === 'machines-update.2'))
  await events.close()
  assert.is(server.listeners(), 0)
  const many = new URLSearchParams(Array.from({ length: 17 }, () => ['view', 'q=x']))
  assert.is((await ask(`${PATH}?${many.toString()}`)).status, 400)
  assert.is((await ask(`${PATH}?view=${'x'.repeat(4001)}`)).status, 400)
})

test('the stream ends with its session', async () => {
  let time = Date.now()
  await using server = await createTestServer({ now: () => new Date(time) })
  const gone = await server.operator()
  const stays = await server.operator()
  const [ended, other] = [readEvents(await gone(PATH)), readEvents(await stays(PATH))]
  await Promise.all([ended.next(), other.next()])
  await gone('/ui/logout', { method: 'POST' })
  assert.is(server.listeners(), 1, 'at once')
  assert.is(await ended.next(), null)
  time += 8 * 24 * 3_600_000
  assert.is(await other.next(), null)
  assert.is(server.listeners(), 0)
})

test('streams end with the key that signed their sessions', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const events = readEvents(await ask(PATH))
  await events.next()
  await replaceSecret(join(server.dir, 'session-secret'))
  assert.is(await events.next(), null)
})

test('a logout ends the stream of a page that does not read', async () => {
  const row = `<td>${'x'.repeat(9_000_000)}</td>`
  await using server = await createTestServer({ views: { renderRow: () => `<tr>${row}</tr>` } })
  await using http = await listen(server)
  const cookie = await logIn(server)
  await server.request(`/pxe/${macOf(1)}`)
  const socket = createConnection({ port: http.port, host: '127.0.0.1' })
  socket.on('error', () => {})
  socket.pause()
  socket.write(`GET ${PATH} HTTP/1.1\r\nHost: x\r\nCookie: ${cookie}\r\n\r\n`)
  await eventually(() => server.listeners() === 1)
  await server.request('/ui/logout', { method: 'POST', headers: { cookie } })
  assert.is(server.listeners(), 0)
  // It has nothing more to take than what lay in the sockets.
  let length = 0
  for await (const piece of socket) length += Buffer.from(piece).length
  assert.ok(length < 9_000_000, String(length))
})

test('the stream of a token ends when it is revoked', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const { token, id } = await (
    await ask('/tokens', asJson({ name: 'wall', scopes: ['read'] }))
  ).json()
  const headers = { authorization: `Bearer ${token}` }
  const events = readEvents(await server.request(PATH, { headers }))
  await events.next()
  await ask(`/tokens/${id}`, { method: 'DELETE' })
  assert.is(await events.next(), null)
})

test('closing the server ends every stream', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const events = readEvents(await ask(PATH))
  await events.next()
  server.close()
  assert.is(await events.next(), null)
})

test('there is an end to how many listen', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const open = await Promise.all(Array.from({ length: 1000 }, () => ask(PATH)))
  assert.is((await ask(PATH)).status, 503)
  await Promise.all(open.map(({ body }) => body?.cancel()))
  const again = await ask(PATH)
  assert.is(again.status, 200)
  await again.body?.cancel()
})

async function logIn(server: TestServer): Promise<string> {
  const body = new URLSearchParams({ password: PASSWORD })
  return cookieOf(await server.request('/ui/login', { method: 'POST', body }))
}

const report = (server: TestServer, n: number, fields: Parameters<typeof bodyOf>[0] = {}) =>
  server.request(`/pxe/${macOf(n)}/progress`, asJson(bodyOf(fields)))

test('a bar moves with the posts, and no row is rendered for it', async () => {
  let rows = 0
  await using server = await createTestServer({
    views: {
      renderRow({ mac }) {
        rows += 1
        return `<tr id="m-${mac}"></tr>`
      },
    },
  })
  const ask = await server.operator()
  for (let n = 1; n <= 50; n += 1) await server.request(`/pxe/${macOf(n)}`)
  await report(server, 1, { phase: 'write' })
  const events = readEvents(await ask('/events/machines'))
  await events.next()
  const before = rows
  for (let at = 1; at <= 40; at += 1) await report(server, 1, { bytes_written: at })
  const bar = await events.until(({ data }) => data.includes('write 40'))
  assert.equal(bar, { name: 'runs-update', data: `<span id="b-${macOf(1)}">write 40</span>` })
  assert.ok(rows - before <= 3, `${rows - before} rows`)
  await events.close()
})

test('a change of phase, a stall and an end are news of the row', async () => {
  let at = Date.now()
  await using server = await createTestServer({
    now: () => new Date(at),
    views: { renderRow: ({ mac }) => `<tr>${stateOf(server, mac)}</tr>` },
  })
  const ask = await server.operator()
  await server.request(`/pxe/${macOf(1)}`)
  const events = readEvents(await ask('/events/machines'))
  const awaitRow = async (state: string) =>
    assert.ok(await events.until(({ data }) => data === `<tr>${state}</tr>`), state)
  await awaitRow('none')
  await report(server, 1, { phase: 'started' })
  await awaitRow('started')
  await report(server, 1, { phase: 'write' })
  await awaitRow('write')
  at += 40_000
  await server.runs.sweep()
  await awaitRow('stalled')
  await report(server, 1, { phase: 'done' })
  await awaitRow('none')
  await events.close()
})

const stateOf = (server: TestServer, mac: string) => {
  const run = server.runs.findRunning(mac)
  if (run === null) return 'none'
  return run.stalled ? 'stalled' : run.phase
}

test('a box that fell silent and boots anew leaves its run as lost', async () => {
  let at = Date.now()
  await using server = await createTestServer({ now: () => new Date(at) })
  await server.request(`/pxe/${macOf(1)}`)
  await report(server, 1, { bytes_written: 7 })
  await server.request(`/pxe/${macOf(1)}`)
  assert.is(server.runs.findRunning(macOf(1))?.result, null, 'somebody may look at its script')
  at += 40_000
  await server.runs.sweep()
  assert.match(await (await server.request(`/pxe/${macOf(1)}`)).text(), /^#!ipxe/)
  assert.is(server.runs.findRunning(macOf(1)), null)
  assert.is(server.runs.find(macOf(1), runIdOf(1))?.result, 'lost')
  const [lost] = await server.journal.list({ kind: 'machine.flash_lost', limit: 5 })
  assert.is(lost?.details?.['run'], runIdOf(1))
})

/** Events of one kind, and what the metrics count of ends. */
async function recordOf(server: TestServer, kind: string, result: string) {
  const events = await server.journal.list({ kind, limit: 9 })
  const metrics = await (await (await server.operator())('/metrics')).text()
  const line = new RegExp(
    `^flasher_flash_total\\{result="${result}",format="[\\w.]+"\\} (\\d+)$`,
    'm',
  )
  return { runs: events.map(({ details }) => details?.['run']), counted: line.exec(metrics)?.[1] }
}

test('a run of which nothing is heard for a day, and one of a deleted machine, are put on record', async () => {
  let at = Date.now()
  await using server = await createTestServer({ now: () => new Date(at) })
  await server.request(`/pxe/${macOf(1)}`)
  await report(server, 1, { bytes_written: 7 })
  at += 25 * 3_600_000
  await server.runs.sweep()
  await server.runs.sweep()
  const lost = { runs: [runIdOf(1)], counted: '1' }
  assert.equal(await recordOf(server, 'machine.flash_lost', 'lost'), lost)
  await server.request(`/pxe/${macOf(2)}`)
  await report(server, 2, { run: runIdOf(2) })
  const ask = await server.operator()
  assert.is((await ask(`/machines/${macOf(2)}`, { method: 'DELETE' })).status, 204)
  const both = { runs: [runIdOf(2), runIdOf(1)], counted: '2' }
  assert.equal(await recordOf(server, 'machine.flash_lost', 'lost'), both)
})

test('a failure is on record once, whether progress, status or both tell it', async () => {
  for (const told of [
    'progress',
    'status',
    'progress status',
    'status progress',
    'status status',
  ]) {
    await using server = await createTestServer({ catalog: [entryOf(REF)] })
    const ask = await server.operator()
    const body = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
    await ask(`/machines/${macOf(1)}`, asJson(body, 'PUT'))
    await server.request(`/pxe/${macOf(1)}`)
    await report(server, 1, { bytes_written: 7 })
    for (const by of told.split(' ')) {
      const answer =
        by === 'progress'
          ? report(server, 1, { phase: 'failed', reason: 'disk gone' })
          : server.request(
              `/pxe/${macOf(1)}/status`,
              asJson({ status: 'failed', reason: 'disk gone' }),
            )
      assert.is((await answer).status, 204, told)
    }
    const once = { runs: [runIdOf(1)], counted: '1' }
    assert.equal(await recordOf(server, 'machine.flash_failed', 'failed'), once, told)
  }
})

test('so it is where nothing was planned or offered, and a later failure is another one', async () => {
  const told = asJson({ status: 'failed', reason: 'disk gone' })
  for (const first of ['progress', 'status']) {
    let at = Date.now()
    await using server = await createTestServer({ now: () => new Date(at) })
    const ask = await server.operator()
    const fail = () => server.request(`/pxe/${macOf(1)}/status`, told)
    await ask(`/machines/${macOf(1)}`, asJson({ boot_mode: 'ipxe-exit' }, 'PUT'))
    await report(server, 1, { bytes_written: 7 })
    if (first === 'progress') await report(server, 1, { phase: 'failed', reason: 'disk gone' })
    else await fail()
    at += 600_000
    await fail()
    const once = { runs: [runIdOf(1)], counted: '1' }
    assert.equal(await recordOf(server, 'machine.flash_failed', 'failed'), once, first)
    at += 3_600_000
    await fail()
    const { length } = await server.journal.list({ kind: 'machine.flash_failed', limit: 9 })
    assert.is(length, 2)
  }
})

test('a page gets the bars of the machines that it shows', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const n of [1, 2]) {
    await server.request(`/pxe/${macOf(n)}`)
    await report(server, n)
  }
  const events = readEvents(await ask(`/events/machines?q=${macOf(2)}`))
  await events.next()
  await report(server, 1, { bytes_written: 7 })
  await report(server, 2, { bytes_written: 8 })
  const bars = await events.until(({ name }) => name === 'runs-update')
  assert.is(bars?.data, `<span id="b-${macOf(2)}">write 8</span>`)
  await events.close()
})

test('a page hears nothing while the bars that it shows stay as they are', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  for (const n of [1, 2]) {
    await server.request(`/pxe/${macOf(n)}`)
    await report(server, n)
  }
  const all = readEvents(await ask('/events/machines'))
  const one = readEvents(await ask(`/events/machines?q=${macOf(2)}`))
  await one.next()
  for (const bytes_written of [1, 2]) {
    await report(server, 1, { bytes_written })
    await all.until(({ data }) => data.includes(`write ${bytes_written}<`))
    // Whoever has just come gets what there is.
    if (bytes_written === 1) assert.match((await one.next())?.data ?? '', 'write 0')
  }
  await report(server, 2, { bytes_written: 8 })
  assert.match((await one.next())?.data ?? '', 'write 8')
  await all.close()
  await one.close()
})

test('a page without rows can ask for all bars', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${macOf(1)}`)
  await report(server, 1)
  const events = readEvents(await ask('/events/machines?q=nothing&bars=all'))
  assert.is((await events.next())?.data, '')
  await report(server, 1, { bytes_written: 7 })
  const bars = await events.until(({ name }) => name === 'runs-update')
  assert.is(bars?.data, `<span id="b-${macOf(1)}">write 7</span>`)
  await events.close()
})

test('500 boxes post at once, twice and out of order: no last state is lost', async () => {
  const boxes = Array.from({ length: 500 }, (_, n) => n + 1)
  await using server = await createTestServer({
    env: { FLASHER_PXE_DISCOVERY_PER_MINUTE: '1000' },
  })
  const ask = await server.operator()
  await Promise.all(boxes.map((n) => server.request(`/pxe/${macOf(n)}`)))
  const events = readEvents(await ask('/events/machines'))
  const flash = async (n: number) => {
    const run = runIdOf(n)
    await report(server, n, { run, phase: 'started' })
    const total_bytes = 1000
    const posts = [100, 300, 200, 900, 400].map((bytes_written) =>
      report(server, n, { run, bytes_written, total_bytes }),
    )
    await Promise.all(posts)
    const last = n % 5 === 0 ? 'failed' : 'done'
    const ends = [1, 2].map(() =>
      report(server, n, { run, phase: last, bytes_written: 1000, total_bytes }),
    )
    await Promise.all([...ends, report(server, n, { run, bytes_written: 950, total_bytes })])
  }
  await Promise.all(boxes.map(flash))
  assert.is(server.runs.listRunning().length, 0)
  assert.is(server.runs.count({ result: 'done' }), 400)
  assert.is(server.runs.count({ result: 'failed' }), 100)
  for (const n of boxes) {
    assert.is(server.runs.find(macOf(n), runIdOf(n))?.bytes_written, 1000, `box ${n}`)
  }
  await events.close()
})

test.run()
