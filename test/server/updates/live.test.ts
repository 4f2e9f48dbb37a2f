import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { replaceSecret } from '#kit/web/access/secret.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
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

test.run()

async function logIn(server: TestServer): Promise<string> {
  const body = new URLSearchParams({ password: PASSWORD })
  return cookieOf(await server.request('/ui/login', { method: 'POST', body }))
}
