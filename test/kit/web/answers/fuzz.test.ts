/** Whatever path, `Host` and method a socket sends: both servers answer or close, and go on. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nothing } from '#kit/web/answers/answers.ts'
import { readBlocks } from '#test/support/docs.ts'
import { NGINX, startNginx } from '#test/support/http/nginx.ts'
import { findPort } from '#test/support/http/ports.ts'
import { codeOf, exchange } from '#test/support/http/raw-http.ts'
import { cookieOf } from '#test/support/server/assembled.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { startCache } from '#test/support/server/image-cache.ts'
import { asJson, checkUp, createTestServer, listen } from '#test/support/server/server.ts'

interface RawRequest {
  readonly method: string
  /** As it goes over the wire, latin1. */
  readonly text: string
}

/** A request that gets neither an answer nor a closed connection ends the test instead of hanging it. */
const HANG_MS = 60_000

function createLane(port: number) {
  let socket: Socket | null = null

  async function connect(): Promise<Socket> {
    const made = createConnection({ port, host: '127.0.0.1' }).setEncoding('latin1')
    // Seen as a close, too.
    made.on('error', () => {})
    await once(made, 'connect')
    return made
  }

  /** The status that was answered; 0: the connection was closed instead. */
  async function ask({ method, text }: RawRequest): Promise<number> {
    if (socket === null || socket.destroyed || socket.readableEnded) socket = await connect()
    const { status, isKept } = await exchangeRaw(socket, method, text)
    if (!isKept) socket.destroy()
    return status
  }

  return {
    ask,
    [Symbol.dispose]() {
      socket?.destroy()
    },
  }
}

function exchangeRaw(socket: Socket, method: string, text: string) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; isKept: boolean }>()
  let said = ''
  const take = (chunk: string) => {
    said += chunk
    const end = endOf(said, method)
    if (end === null || said.length < end) return
    resolve({ status: statusOf(said), isKept: !/^connection: close\r$/im.test(said.slice(0, end)) })
  }
  const close = () => resolve({ status: statusOf(said), isKept: false })
  const hang = () =>
    reject(new Error(`no answer to ${JSON.stringify(text)}: ${said.slice(0, 200)}`))
  socket.on('data', take).once('close', close).once('end', close).setTimeout(HANG_MS, hang)
  socket.write(text, 'latin1')
  return promise.finally(() => {
    socket.off('data', take).off('close', close).off('end', close).off('timeout', hang)
  })
}

const statusOf = (said: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(said)?.[1] ?? 0)

/** Where the answer ends; null: that is not known yet, or it is the end of the connection. */
function endOf(said: string, method: string): number | null {
  const head = said.indexOf('\r\n\r\n') + 4
  if (head === 3) return null
  if (method === 'HEAD' || /^HTTP\/1\.1 (?:1\d\d|204|304)/.test(said)) return head
  const headers = said.slice(0, head)
  const length = /^content-length: (\d+)\r$/im.exec(headers)?.[1]
  if (length !== undefined) return head + Number(length)
  if (!/^transfer-encoding: chunked\r$/im.test(headers)) return null
  const last = said.indexOf('0\r\n\r\n', head)
  return last === -1 ? null : last + 5
}

const SEED = 20_260_501
const LANES = 8
const COUNTS = { targets: 50, hosts: 25, combinations: 10_000 }

const MAC = '52:54:00:12:34:56'
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']
const TARGETS = [
  ['/', '/healthz', '/ui/login', `/pxe/${MAC}`, `/pxe/${MAC}/plan`, '/boot/x', '/catalog', '*'],
  ['/../', '/..', '/pxe/..', '/boot/../ui/login', '/b/./x', '/files/..', '/static/../x'],
  ['/%2e%2e/', '/.%2E', '/boot/%2e', '/%2e%2e%2f', '/..%5c', '/%252e%252e/'],
  ['/boot//x', '//', '//evil/..', '/\\', '/a\\..\\b', '/%5c', '/%', '/%zz', '/%ff', '/%00'],
  ['/a"b', '/<>', '/a#/..', '/\xff', '/?../..', '/?"\'%zz', `/pxe/%2f`, `/${'a'.repeat(3000)}`],
  ['http://a/healthz', 'http://a:99999/../', 'https://[::1/', 'http:\\\\a', 'ftp://a/', 'a'],
].flat()
/** null: none, as HTTP/1.0 has it. */
const HOSTS: readonly (string | null)[] = [
  [null, 'a', '', 'a:80', 'a:99999', 'a:0', 'a:', ':80', '[::1]:80', '[::1', '::1', '1.2.3'],
  ['xn--', 'a.0x7f', 'a b', 'a@b', 'a/../b', 'a..b', '${x}', '\xff', 'a\r\nHost: b'],
].flat()
const PIECES = ['/', '.', '..', '%2e', '\\', '%5c', '%2f', '//', ':', '@', '"', '#', '[', ']', 'a']

/** The same numbers from 0 to 1 at each run (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function listRequests(): readonly RawRequest[] {
  const random = createRandom(SEED)
  const garble = () =>
    Array.from({ length: 1 + random() * 6 }, () => PIECES[Math.floor(random() * PIECES.length)])
  const targets = fill(TARGETS, COUNTS.targets, () => `/${garble().join('')}`)
  const hosts = fill(HOSTS, COUNTS.hosts, () => `a${garble().join('')}`)
  return targets.flatMap((target) =>
    hosts.flatMap((host) => METHODS.map((method) => renderRequest(method, target, host))),
  )
}

/** The fixed ones, and as many others as are missing. */
const fill = <T>(fixed: readonly T[], length: number, make: () => T): readonly T[] => [
  ...fixed,
  ...Array.from({ length: length - fixed.length }, make),
]

function renderRequest(method: string, target: string, host: string | null): RawRequest {
  const [version, named] = host === null ? ['1.0', ''] : ['1.1', `Host: ${host}\r\n`]
  const text = `${method} ${target} HTTP/${version}\r\n${named}Connection: keep-alive\r\n\r\n`
  return { method, text }
}

/** Texts of requests by the status that they got; 0: a closed connection. */
async function sendAll(port: number): Promise<Map<number, string[]>> {
  const requests = listRequests()
  assert.is(requests.length, COUNTS.combinations)
  const found = new Map<number, string[]>()
  const waiting = requests.values()
  const work = async () => {
    using lane = createLane(port)
    // One iterator for all lanes: each takes the next that is left.
    for (const request of waiting) {
      const status = await lane.ask(request)
      found.set(status, [...(found.get(status) ?? []), request.text])
    }
  }
  await Promise.all(Array.from({ length: LANES }, work))
  return found
}

/** It answered clearly throughout, some of it well, and is still there. */
async function checkServer(port: number, backend: string): Promise<void> {
  const found = await sendAll(port)
  const failures = [...found].filter(([status]) => status >= 500).flatMap(([, texts]) => texts)
  assert.equal(failures.slice(0, 5), [])
  assert.ok((found.get(200)?.length ?? 0) > 0)
  assert.ok((found.get(400)?.length ?? 0) > COUNTS.combinations / 2)
  assert.is((await fetch(`${backend}/healthz`)).status, 200)
}

/** The documented site for pages and programs, in front of another server and without its TLS. */
function renderSite(port: number, backend: string): string {
  const [site = ''] = readBlocks('server.md', 'nginx')
  const [pages = ''] = site.split('# Machines:')
  return pages
    .replace('listen 443 ssl', `listen 127.0.0.1:${port}`)
    .replaceAll(/^ *ssl_.*$/gm, '')
    .replace('http://127.0.0.1:8080', backend)
}

const test = suite('fuzz')

test('10,000 combinations of path, Host and method end neither server', async () => {
  await using home = await createServerHome()
  await using web = await home.start()
  await using cache = await startCache(home.at('state-of-cache'))
  const backends = [web.url, cache.base]
  for (const backend of backends) await checkServer(Number(new URL(backend).port), backend)
  if (existsSync(NGINX)) {
    const ports = [await findPort(), await findPort()]
    const sites = backends.map((backend, at) => renderSite(ports[at] ?? 0, backend)).join('\n')
    await using _nginx = await startNginx(join(home.dir, 'nginx'), sites, () =>
      fetch(`http://127.0.0.1:${ports[0]}/healthz`),
    )
    for (const [at, backend] of backends.entries()) await checkServer(ports[at] ?? 0, backend)
  }
  assert.is(web.child.exitCode, null)
  assert.not.match(cache.said(), /error/i)
})

const JSON_TYPE = { 'content-type': 'application/json' }

/** Every open route that takes a body, and some that take none. */
const OPEN_POSTS = [
  `/pxe/${MAC}/inventory`,
  `/pxe/${MAC}/status`,
  `/pxe/${MAC}/done`,
  '/ui/login',
] as const

test('malformed bodies get a clear answer', async () => {
  await using server = await createTestServer()
  await server.request(`/pxe/${MAC}`)
  const bodies = [
    '{',
    '{"disks":',
    '[]]',
    '"text"',
    '7',
    'null',
    '{"disks":null}',
    '{"disks":{}}',
    '{"disks":[null]}',
    '{"disks":[{"path":7}]}',
    '{"disks":[],"lshw":"text"}',
    '{"disks":[],"lshw":7}',
    '{"disks":[],"more":1}',
    '{"__proto__":{"disks":[]}}',
    '{"disks":[{"path":"/dev/sda","serial":{"toString":1}}]}',
    `{"disks":[{"path":"${'x'.repeat(256)}"}]}`,
    '\xff\xfe',
    '\u0000',
    'NaN',
    '{"status":"done","reason":7}',
    `{"status":"failed","reason":"${'x'.repeat(501)}"}`,
  ]
  for (const path of OPEN_POSTS.slice(0, 2)) {
    for (const body of bodies) {
      const answer = await server.request(path, { method: 'POST', body, headers: JSON_TYPE })
      assert.is(answer.status, 422, `${path} ${body.slice(0, 60)}`)
      const { detail } = await answer.json()
      assert.ok(Array.isArray(detail) && detail.length > 0)
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx']) {
      const wish = { method: 'POST', body: '{}', headers: { 'content-type': type } }
      assert.is((await server.request(path, wish)).status, 415, type)
    }
  }
  for (const type of [
    'application/json',
    'multipart/form-data',
    'multipart/form-data; boundary=x',
  ]) {
    const wish = { method: 'POST', body: '{"a":', headers: { 'content-type': type } }
    const { status } = await server.request('/ui/login', wish)
    assert.ok([400, 415].includes(status), `${type} ${status}`)
  }
  await checkUp(server)
})

/** The body itself is one more level. */
const deep = (levels: number) => `{"disks":[],"lshw":${'['.repeat(levels)}${']'.repeat(levels)}}`

test('deep bodies are not parsed', async () => {
  await using server = await createTestServer()
  await server.request(`/pxe/${MAC}`)
  const post = (body: string) =>
    server.request(`/pxe/${MAC}/inventory`, { method: 'POST', body, headers: JSON_TYPE })
  assert.is((await post(deep(99))).status, 204)
  assert.is((await post(deep(100))).status, 422)
  assert.is((await post('['.repeat(1_000_000))).status, 422)
  assert.is((await post(`{"disks":[],"lshw":{"text":"${'['.repeat(1000)}\\"["}}`)).status, 204)
  await checkUp(server)
})

test('oversized bodies are cut off, announced or not', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.request(`/pxe/${MAC}`)
  for (const path of OPEN_POSTS) {
    const type = path === '/ui/login' ? 'application/x-www-form-urlencoded' : 'application/json'
    const announced = await exchange(
      http.port,
      `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 99999999999\r\n\r\n{`,
    )
    assert.is(codeOf(announced), 413, path)
  }
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(64 * 1024).fill(0x20))
    },
  })
  const wish: object = { method: 'POST', body: endless, duplex: 'half', headers: JSON_TYPE }
  assert.is((await server.request(`/pxe/${MAC}/status`, wish)).status, 413)
  await checkUp(server)
})

test('a body that never comes is given up', async () => {
  await using server = await createTestServer({
    routes: () => [
      {
        method: 'POST',
        path: '/slow',
        access: 'open',
        takes: 'json',
        seconds: 0.2,
        handle: () => nothing(),
      },
    ],
  })
  await using http = await listen(server)
  const text = await exchange(
    http.port,
    'POST /slow HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{',
    3000,
  )
  assert.is(codeOf(text), 408)
  await checkUp(server)
})

test('what a client posts comes back as text, never as markup of ours', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const markup = '<script>alert(1)</script>'
  await server.request(`/pxe/${MAC}`)
  const disk = { path: markup, serial: markup, model: markup, vendor: markup.slice(0, 60) }
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [disk], lshw: { id: markup } }))
  await server.request(`/pxe/${MAC}/status`, asJson({ status: 'failed', reason: markup }))
  for (const path of [
    `/machines/${MAC}`,
    `/machines/${MAC}/lshw.json`,
    `/machines/${MAC}/disks.json`,
    '/events',
    `/pxe/${MAC}/plan`,
  ]) {
    const { headers } = await ask(path)
    assert.match(headers.get('content-type') ?? '', /^application\/json/)
    assert.is(headers.get('x-content-type-options'), 'nosniff')
  }
  const hostile = await ask(`/ui/${encodeURIComponent(markup)}`)
  assert.not.match(await hostile.text(), '<script>')
})

test('errors tell nothing of the inside', async () => {
  await using server = await createTestServer({
    assembly: {
      line: {
        toWire() {
          throw new Error('a bug with /secret/path')
        },
      },
    },
    views: {
      renderLogin() {
        throw new Error('a bug')
      },
    },
  })
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const answer = await ask(`/machines/${MAC}`)
  assert.is(answer.status, 500)
  assert.equal(await answer.json(), { detail: 'Internal Server Error' })
  const page = await server.request('/ui/login')
  assert.is(page.status, 500)
  assert.not.match(await page.text(), 'bug')
  assert.ok(server.log.some((line) => line.includes('/secret/path')))
})

test('a request with many odd parameters is still one request', async () => {
  await using server = await createTestServer()
  const query = Array.from({ length: 5000 }, (_, n) => `k${n}=${'v'.repeat(20)}`).join('&')
  assert.is((await server.request(`/pxe/${MAC}?${query}`)).status, 200)
  assert.is((await server.request(`/pxe/${MAC}?buildarch=${'x'.repeat(10_000)}`)).status, 200)
  assert.is((await server.request(`/pxe/${MAC}?buildarch=%00%0a%24%7bx%7d`)).status, 200)
  const cookies = Array.from({ length: 500 }, () => 'flasher-token=x.y').join('; ')
  assert.is((await server.request('/machines', { headers: { cookie: cookies } })).status, 401)
  assert.is(cookieOf(await server.request('/ui/login')), '')
  await checkUp(server)
})

test.run()
