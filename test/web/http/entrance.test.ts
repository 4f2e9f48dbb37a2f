/** What comes in over a socket before any route sees it: targets, hosts, and faults that nobody caught. */
import { createServer } from 'node:http'
import { H3 } from 'h3'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEntrance } from '../../../runtime/web/http/entrance.ts'
import { codeOf, exchange } from '../../support/http/raw-http.ts'
import { checkUp, createTestServer, listen } from '../../support/server/server.ts'

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

test('repeated slashes below /boot/ are one, and nowhere else', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.putBootFile('grubx64.efi', 'bytes')
  for (const target of ['/boot/grubx64.efi', '/boot//grubx64.efi', '/boot///grubx64.efi?a=//']) {
    assert.match(await send(http.port, target), /\r\n\r\nbytes$/, target)
  }
  assert.is(codeOf(await send(http.port, '//boot/grubx64.efi')), 404)
  assert.is(codeOf(await send(http.port, '//healthz')), 404)
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
    const app = Object.assign(new H3(), { fetch })
    const http = createServer(createEntrance(app, { error: (line) => void log.push(line) }))
    await new Promise<void>((resolve) => {
      http.listen(0, '127.0.0.1', resolve)
    })
    const address = http.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    for (const round of [1, 2]) {
      const text = await send(port, `/pxe/${MAC}`)
      assert.is(codeOf(text), 500, text)
      assert.match(text, '{"detail":"Internal Server Error"}')
      assert.is(log.length, round)
    }
    assert.match(log[0] ?? '', `GET /pxe/${MAC}: `)
    http.close()
  }
})

test.run()
