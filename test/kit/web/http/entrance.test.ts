/** What comes in over a socket before any route sees it: targets, hosts, and faults that nobody caught. */
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { H3 } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openServed } from '#kit/host/served-files.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import { renderResponse } from '#kit/web/answers/answers.ts'
import { createEntrance, createSpentNumbers } from '#kit/web/http/entrance.ts'
import { codeOf, exchange } from '#test/support/http/raw-http.ts'
import { checkUp, createTestServer, listen } from '#test/support/server/server.ts'

const MAC = '52:54:00:12:34:56'
const test = suite('entrance')

const send = (port: number, target: string, { host = 'x', method = 'GET' } = {}) =>
  exchange(
    port,
    Buffer.from(
      `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
      'latin1',
    ),
  )

test('a URL that cannot be made is a 400, and the server goes on', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'OPTIONS']) {
    const text = await send(http.port, '/../', { host: 'a:99999', method })
    assert.is(codeOf(text), 400, text)
  }
  for (const host of ['a:99999', 'a.0x7f', 'a b', '[::1', '']) {
    assert.is(codeOf(await send(http.port, '/a"b', { host })), 400, host)
  }
  await checkUp(server)
})

test('paths that lead elsewhere are refused, and say so', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  const refused = [
    '/pxe/..',
    '/boot/../ui/login',
    '/%2e%2e/',
    '/.',
    '/boot/%2E',
    '/ui\\login',
    '/a/%2e.',
  ]
  for (const target of refused) {
    const text = await send(http.port, target)
    assert.is(codeOf(text), 400, target)
    assert.match(text, /content-type: application\/json\r\n/)
    assert.match(text, /\r\n\r\n\{"detail":"the path has a /)
  }
  assert.is(codeOf(await send(http.port, 'ftp://x/')), 400)
  // The query is no path.
  assert.is(codeOf(await send(http.port, '/healthz?next=/../..\\')), 200)
  assert.is(await server.machines.count(), 0)
})

test('repeated slashes before and below /boot/ are one, and nowhere else', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.putBootFile('grubx64.efi', 'bytes')
  for (const target of [
    '/boot/grubx64.efi',
    '/boot//grubx64.efi',
    '/boot///grubx64.efi?a=//',
    '//boot/grubx64.efi',
  ]) {
    assert.match(await send(http.port, target), /\r\n\r\nbytes$/, target)
  }
  assert.match(await send(http.port, '//pxe-bootstrap.ipxe'), '#!ipxe')
  assert.match(await send(http.port, `//pxe/${MAC}`), '#!ipxe')
  assert.is(codeOf(await send(http.port, '//healthz')), 404)
})

test('whether it is well is said to whoever asks, by whatever name', async () => {
  await using server = await createTestServer({
    env: { FLASHER_SERVER_ALLOWED_HOSTS: 'flasher.lan' },
  })
  await using http = await listen(server)
  for (const host of ['', 'a b', 'a:99999', '[fe80::1%25eth0]:8080', 'other.', '10.0.0.1']) {
    assert.match(await send(http.port, '/healthz', { host }), '{"status":"ok"}', host)
    assert.is(codeOf(await send(http.port, '/version', { host })), 400, host)
    const method = 'OPTIONS'
    assert.match(await send(http.port, '/healthz?ready', { host, method }), '{"status":"ok"}', host)
  }
  for (const host of ['flasher.lan', 'FLASHER.lan.:8080']) {
    assert.is(codeOf(await send(http.port, '/version', { host })), 200, host)
  }
})

test('OPTIONS is taken by the health check alone, which names it', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  assert.is(codeOf(await send(http.port, '/version', { method: 'OPTIONS' })), 405)
  assert.match(await send(http.port, '/healthz', { method: 'PUT' }), 'allow: GET, HEAD, OPTIONS')
})

test('an idle connection outlives those that proxies keep for a minute', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  const answer = await fetch(`http://127.0.0.1:${http.port}/healthz`)
  assert.is(answer.headers.get('keep-alive'), 'timeout=75')
  assert.is(http.http.keepAliveTimeout, 75_000)
})

test('the zone and the last dot of an address are taken, and never put into scripts', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  for (const [host, base] of [
    ['[fe80::1%25eth0]:8080', 'http://[fe80::1]:8080/'],
    ['[fe80::1%eth0.5]', 'http://[fe80::1]/'],
    ['10.0.0.1.', 'http://10.0.0.1/'],
  ] as const) {
    for (const path of ['/pxe-bootstrap.ipxe', `/pxe/${MAC}`, '/boot/autoexec.ipxe']) {
      const text = await send(http.port, path, { host })
      assert.match(text, base, `${host} ${path}`)
      assert.not.match(text, /%|eth0|1\.\//)
    }
  }
  for (const host of ['[fe80::1%]', '[fe80::1%a b]', '[fe80::1%]]', 'a..', '..', '1.2.3.']) {
    assert.is(codeOf(await send(http.port, '/version', { host })), 400, host)
  }
})

test('absolute targets and HTTP/1.0 without a Host are served', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  const ask = (head: string) => exchange(http.port, `GET ${head}\r\nConnection: close\r\n\r\n`)
  const script = '/pxe-bootstrap.ipxe'
  assert.match(await ask(`http://a.test${script} HTTP/1.1\r\nHost: b.test`), 'http://b.test/pxe/')
  assert.match(await ask(`http://a.test:81${script} HTTP/1.0`), 'http://a.test:81/pxe/')
  assert.match(await ask(`${script} HTTP/1.0`), `http://127.0.0.1:${http.port}/pxe/`)
  assert.is(codeOf(await ask(`/a"b HTTP/1.0`)), 404)
  assert.is(codeOf(await ask(`http://a.test:99999${script} HTTP/1.1\r\nHost: b.test`)), 400)
  assert.is(codeOf(await ask(`http://a.test/../x HTTP/1.1\r\nHost: b.test`)), 400)
})

test('a request without an answer of its own gets a 500, and the next one is served', async () => {
  const faults = [
    () => {
      throw new Error('at once')
    },
    async () => {
      throw new Error('later')
    },
  ]
  for (const fetch of faults) {
    const log: string[] = []
    using server = await serveApp(fetch, log)
    for (const round of [1, 2]) {
      const text = await send(server.port, `/pxe/${MAC}`)
      assert.is(codeOf(text), 500, text)
      assert.match(text, '{"detail":"Internal Server Error"}')
      assert.is(log.length, round)
    }
    assert.match(log[0] ?? '', `GET /pxe/${MAC}: `)
  }
})

/** A server with this entrance alone. */
async function serveApp(fetch: H3['fetch'], log: string[] = []) {
  const app = Object.assign(new H3(), { fetch })
  const http = createServer(createEntrance(app, { error: (line) => void log.push(line) }))
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const address = http.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return { port, [Symbol.dispose]: () => void http.close() }
}

const pipelined = (count: number, path: string) =>
  Array.from({ length: count }, (_, n) => {
    const end = n === count - 1 ? 'Connection: close\r\n' : ''
    return `GET ${path}?${n} HTTP/1.1\r\nHost: x\r\n${end}\r\n`
  }).join('')

test('requests that come at once on one connection are answered one after the other', async () => {
  let [open, most] = [0, 0]
  using server = await serveApp(async ({ url }) => {
    open += 1
    most = Math.max(most, open)
    await nextTurn()
    open -= 1
    return new Response(`<${new URL(url).search}>`)
  })
  const text = await exchange(server.port, pipelined(300, '/'))
  const answers = text.match(/<[^>]+>/g)
  assert.equal(
    answers,
    Array.from({ length: 300 }, (_, n) => `<?${n}>`),
  )
  assert.is(most, 1)
})

test('a connection on which too many requests wait is closed', async () => {
  let begun = 0
  using server = await serveApp(() => {
    begun += 1
    return new Promise(() => {})
  })
  const socket = connect(server.port, '127.0.0.1').on('error', () => {})
  socket.write(pipelined(5000, '/'))
  await new Promise((resolve) => {
    socket.on('close', resolve)
  })
  assert.is(begun, 1)
})

test('one connection has one file open, however many it asks for', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.putBootFile('large.img', 'x'.repeat(300_000))
  const socket = connect(http.port, '127.0.0.1')
  socket.write(pipelined(100, '/boot/large.img'))
  let [bytes, most] = [0, 0]
  for await (const part of socket) {
    assert.instance(part, Buffer)
    bytes += part.length
    most = Math.max(most, countOpen('/large.img'))
  }
  assert.ok(bytes > 100 * 300_000, String(bytes))
  assert.ok(most <= 1, `${most} files are open`)
  assert.is(countOpen('/large.img'), 0)
})

test('a file is closed when the headers of its answer cannot be sent', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-entrance-'))
  await writeFile(join(folder.path, 'large.img'), 'x'.repeat(300_000))
  const log: string[] = []
  const app = new H3()
  app.get('/large.img', async (event) => {
    const file = await openServed(folder.path, 'large.img')
    if (file === null) throw new Error('no file')
    const headers = { 'x-name': 'two\nlines' }
    const { answer } = await answerFile(event, 'large.img', { ...file, headers })
    return renderResponse(answer, event)
  })
  using server = await serveApp(app.fetch, log)
  assert.is(codeOf(await send(server.port, '/large.img')), 500)
  assert.match(log[0] ?? '', 'Invalid character in header content')
  assert.is(countOpen('/large.img'), 0)
})

/** Files of this process whose path ends so. */
const countOpen = (end: string) =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).endsWith(end)
    } catch {
      // It was closed meanwhile.
      return false
    }
  }).length

test('each counts once, in any order, and for each sender', () => {
  const spend = createSpentNumbers()
  for (const number of [1, 3, 2, 5000, 4999]) assert.ok(spend('a', number), String(number))
  for (const number of [3, 2, 1, 4999, 5000]) assert.not.ok(spend('a', number), String(number))
  assert.ok(spend('b', 3))
})

test('what is older than the last 4,096 counts as used', () => {
  const spend = createSpentNumbers()
  assert.ok(spend('a', 10_000))
  assert.not.ok(spend('a', 10_000 - 4096))
  assert.ok(spend('a', 10_000 - 4095))
  assert.ok(spend('a', 10_001))
  assert.not.ok(spend('a', 10_000 - 4095))
})

test('who goes on is not forgotten for many that are gone', () => {
  const spend = createSpentNumbers()
  assert.ok(spend('a', 1))
  for (let n = 0; n < 1000; n += 1) {
    spend(`gone ${n}`, 1)
    if (n % 100 === 0) assert.not.ok(spend('a', 1))
  }
})

test.run()
