/** Compression over a socket: what asks for it gets it, whole and as a stream, and machines get none. */
import { request as send, type IncomingHttpHeaders } from 'node:http'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bodyOf, runIdOf } from '#test/support/server/runs.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import {
  asJson,
  createTestServer,
  listen,
  type TestServerOptions,
} from '#test/support/server/server.ts'
import { json, page, streamOf, taggedJson, answer as makeAnswer } from '#kit/web/answers/answers.ts'
import type { Route } from '#kit/web/answers/route.ts'

const MAC = '52:54:00:12:34:56'
const LONG = 'machines and images, '.repeat(200)
const test = suite('compression')

interface Sent {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The bytes as they came over the wire. */
  readonly bytes: Buffer
}

const ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/ui/dashboard',
    access: { page: 'read' },
    handle: () => page(`<h1>${LONG}</h1>`),
  },
  {
    method: 'GET',
    path: '/ui/short',
    access: { page: 'read' },
    handle: () => page('<h1>short</h1>'),
  },
  { method: 'GET', path: '/list', access: 'read', handle: () => json({ LONG }) },
  {
    method: 'GET',
    path: '/tagged',
    access: 'read',
    handle: (event) => taggedJson(event, { body: JSON.stringify(LONG), etag: '"one"' }),
  },
  {
    method: 'GET',
    path: '/strong',
    access: 'read',
    handle: () => json(LONG, 200, { etag: '"one"' }),
  },
]

async function open(options: TestServerOptions = {}) {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await createTestServer({ routes: () => ROUTES, ...options }))
  const http = stack.use(await listen(server))
  const login = await fetch(`${http.url}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password: PASSWORD }),
    redirect: 'manual',
  })
  const cookie = cookieOf(login)
  return {
    server,
    get: (path: string, headers: Readonly<Record<string, string>> = {}, method = 'GET') =>
      new Promise<Sent>((resolve, reject) => {
        send(`${http.url}${path}`, { method, headers: { cookie, ...headers } }, (answer) => {
          Array.fromAsync<Buffer, Buffer>(answer, (part) => part).then(
            (parts) =>
              resolve({
                status: answer.statusCode ?? 0,
                headers: answer.headers,
                bytes: Buffer.concat(parts),
              }),
            reject,
          )
        })
          .once('error', reject)
          .end()
      }),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const read = ({ headers, bytes }: Sent): string => {
  const coding = headers['content-encoding']
  if (coding === undefined) return bytes.toString()
  return (coding === 'br' ? brotliDecompressSync(bytes) : gunzipSync(bytes)).toString()
}

test('a page is compressed as the request asks, and says on what it depends', async () => {
  await using site = await open()
  const plain = await site.get('/ui/dashboard')
  assert.is(plain.headers['content-encoding'], undefined)
  assert.match(String(plain.headers.vary), 'accept-encoding')
  for (const [accepts, coding] of [
    ['gzip, deflate', 'gzip'],
    ['gzip, br', 'br'],
    ['br;q=0.1, gzip;q=0.2', 'gzip'],
    ['identity, gzip;q=0.5', undefined],
    ['*', 'br'],
    ['zstd', undefined],
  ] as const) {
    const sent = await site.get('/ui/dashboard', { 'accept-encoding': accepts })
    assert.is(sent.headers['content-encoding'], coding, accepts)
    assert.match(String(sent.headers.vary), 'accept-encoding')
    assert.is(sent.headers['cache-control'], 'no-store')
    assert.match(String(sent.headers['content-security-policy']), 'form-action')
    assert.is(sent.headers['content-length'], String(sent.bytes.length))
    assert.ok(read(sent).startsWith(plain.bytes.toString()), accepts)
    if (coding !== undefined) assert.ok(sent.bytes.length < 600, String(sent.bytes.length))
  }
})

test('a short page is sent as it is, unless plain bytes are refused', async () => {
  await using site = await open()
  const short = await site.get('/ui/short', { 'accept-encoding': 'gzip' })
  assert.is(short.headers['content-encoding'], undefined)
  const forced = await site.get('/ui/short', { 'accept-encoding': 'gzip, identity;q=0' })
  assert.is(forced.headers['content-encoding'], 'gzip')
  assert.match(read(forced), '<h1>short</h1>')
})

test('the length of a page does not tell what is in it', async () => {
  await using site = await open()
  const lengths = new Set<number>()
  for (let times = 0; times < 40; times += 1) {
    lengths.add((await site.get('/ui/dashboard', { 'accept-encoding': 'gzip' })).bytes.length)
  }
  assert.ok(lengths.size > 4, [...lengths].join(' '))
})

test('JSON: a weak tag stands for every coding, a strong one for the very bytes', async () => {
  await using site = await open()
  const zipped = { 'accept-encoding': 'br' }
  const list = await site.get('/list', zipped)
  assert.equal(JSON.parse(read(list)), { LONG })
  assert.is(list.headers['content-encoding'], 'br')
  const tagged = await site.get('/tagged', zipped)
  assert.is(tagged.headers.etag, 'W/"one"')
  assert.is(tagged.headers['content-encoding'], 'br')
  for (const known of ['W/"one"', '"one"', '"two", W/"one"', '*']) {
    const again = await site.get('/tagged', { ...zipped, 'if-none-match': known })
    assert.equal([again.status, again.headers.etag, again.bytes.length], [304, 'W/"one"', 0], known)
    assert.match(String(again.headers.vary), 'accept-encoding')
  }
  assert.is((await site.get('/tagged', { 'if-none-match': '"two"' })).status, 200)
  const strong = await site.get('/strong', zipped)
  assert.equal([strong.headers.etag, strong.headers['content-encoding']], ['"one"', undefined])
})

test('HEAD has the headers of the GET, and no body', async () => {
  await using site = await open()
  for (const path of ['/list', '/tagged', '/ui/short']) {
    const { headers: got } = await site.get(path, { 'accept-encoding': 'gzip' })
    const { headers, bytes } = await site.get(path, { 'accept-encoding': 'gzip' }, 'HEAD')
    assert.equal({ ...headers, date: '' }, { ...got, date: '' }, path)
    assert.is(bytes.length, 0)
  }
  const head = await site.get('/ui/dashboard', { 'accept-encoding': 'gzip' }, 'HEAD')
  assert.equal([head.headers['content-encoding'], head.bytes.length], ['gzip', 0])
})

test('an export is compressed while it is made', async () => {
  await using site = await open()
  await site.server.request(`/pxe/${MAC}`)
  for (let n = 0; n < 60; n += 1) {
    const report = asJson(bodyOf({ run: runIdOf(n), phase: 'done' }))
    await site.server.request(`/pxe/${MAC}/progress`, report)
  }
  const plain = await site.get('/runs.csv')
  for (const coding of ['gzip', 'br']) {
    const sent = await site.get('/runs.csv', { 'accept-encoding': coding })
    assert.is(sent.headers['content-encoding'], coding)
    assert.is(sent.headers['content-length'], undefined)
    assert.is(read(sent), plain.bytes.toString())
    assert.ok(sent.bytes.length < plain.bytes.length / 3)
    const head = await site.get('/runs.csv', { 'accept-encoding': coding }, 'HEAD')
    assert.is(head.headers['content-encoding'], coding)
  }
})

async function* breakOff() {
  yield Buffer.from(LONG)
  throw new Error('a bug')
}

test('an export that fails on the way is cut off, not ended', async () => {
  const headers = { 'content-type': 'text/csv' }
  const handle = () => makeAnswer(200, headers, streamOf(breakOff()))
  await using site = await open({
    routes: () => [...ROUTES, { method: 'GET', path: '/broken.csv', access: 'read', handle }],
  })
  for (const coding of ['identity', 'gzip', 'br']) {
    const failed = await site.get('/broken.csv', { 'accept-encoding': coding }).then(
      () => false,
      () => true,
    )
    assert.ok(failed, coding)
  }
  assert.is((await site.get('/healthz')).status, 200)
})

test('machines, monitoring and event streams are answered as they are', async () => {
  await using site = await open()
  await site.server.putBootFile('vmlinuz', LONG)
  const scripts = ['/pxe-bootstrap.ipxe', `/pxe/${MAC}`, `/pxe/${MAC}/plan`, '/boot/vmlinuz']
  for (const path of [...scripts, '/healthz', '/version']) {
    const { headers } = await site.get(path, { 'accept-encoding': 'br, gzip, identity;q=0' })
    assert.equal([headers['content-encoding'], headers.vary], [undefined, undefined], path)
  }
  const operator = await site.server.operator()
  const channel = await operator('/events/machines', { headers: { 'accept-encoding': 'gzip' } })
  assert.is(channel.headers.get('content-encoding'), null)
  await channel.body?.cancel()
})

test.run()
