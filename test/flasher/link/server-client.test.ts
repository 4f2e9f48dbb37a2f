import { once } from 'node:events'
import { mkdtempDisposable } from 'node:fs/promises'
import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import * as z from 'zod'
import {
  createServerClient,
  createServerSite,
  findServer,
  type ServerClientOptions,
  type SiteOptions,
} from '#flasher/link/server-client.ts'
import { type Mac, parseMac } from '#kit/net/rules/mac.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { diskOf } from '#test/support/server/machine-fixture.ts'
import { createTestServer, listen } from '#test/support/server/server.ts'

const test = suite('server client')

function mac(text: string): Mac {
  const parsed = parseMac(text)
  if (!parsed.ok) throw new Error(text)
  return parsed.value
}
const MAC = mac('52:54:00:00:00:01')
const never = new AbortController().signal

async function serve(answer: RequestListener) {
  const http = createServer(answer)
  await new Promise<void>((resolve) => {
    http.listen(0, '127.0.0.1', resolve)
  })
  const address = http.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      await new Promise((resolve) => {
        http.close(resolve)
      })
    },
  }
}

const find = (...bases: readonly string[]) => findServer(bases, { signal: never })
const clientOf = (base: string, more: Partial<ServerClientOptions> = {}) =>
  createServerClient({ base, mac: MAC, token: null, signal: never, retryMs: 5, ...more })

async function read(request: IncomingMessage) {
  let text = ''
  for await (const chunk of request) text += String(chunk)
  return text
}

test('the real server: disks, plan, done', async () => {
  await using server = await createTestServer()
  await using open = await listen(server)
  const client = clientOf(open.url)
  const early = await client.sendInventory({ disks: [] })
  assert.is(early.ok ? '' : early.refusal.reason, `HTTP 404: no machine record for ${MAC}`)
  const plan = await client.fetchPlan()
  assert.equal(plan, { ok: true, value: { mode: 'inventory', plan: { mode: 'inventory' } } })
  const disk = {
    path: '/dev/vda',
    size: '1G',
    vendor: null,
    model: null,
    serial: null,
    tran: null,
    removable: false,
    readonly: false,
    wwn: null,
    by_path: 'pci-0000:00:05.0',
    size_bytes: 2 ** 30,
  }
  assert.is((await client.sendInventory({ disks: [disk], lshw: { id: 'box' } })).ok, true)
  assert.equal((await server.machines.find(MAC))?.known_disks, [disk])
  assert.is((await client.sendDone()).ok, true)
  assert.is.not((await server.machines.find(MAC))?.last_flashed_at, null)
  assert.is((await client.sendFailure('x'.repeat(900))).ok, true)
})

test('a server that refuses a long list gets the first 64 disks of it, from then on', async () => {
  const counts: number[] = []
  await using server = await serve(async (request, response) => {
    const { disks } = z
      .object({ disks: z.array(z.unknown()) })
      .parse(JSON.parse(await read(request)))
    counts.push(disks.length)
    response.writeHead(disks.length > 64 ? 422 : 204).end()
  })
  const client = clientOf(server.url)
  const disks = Array.from({ length: 100 }, (_, n) => diskOf(`S${n}`))
  assert.ok((await client.sendInventory({ disks })).ok)
  assert.ok((await client.sendInventory({ disks, lshw: {} })).ok)
  assert.equal(counts, [100, 64, 64])
})

test('everything is sent as the server wants it, with the token', async () => {
  const seen: string[] = []
  await using server = await serve((request, response) => {
    void read(request).then((body) => {
      const { 'content-type': type = '-', authorization = '-' } = request.headers
      seen.push(`${request.method} ${request.url} ${type} ${authorization} ${body}`)
      response.writeHead(204).end()
    })
  })
  const client = clientOf(`${server.url}/lab`, { token: 'boot.token' })
  await client.fetchPlan()
  await client.sendLog('aaaaaaaa-1', 'first\nlast\n')
  await client.sendDone()
  await client.sendFailure('no such disk')
  const at = `/lab/pxe/${MAC}`
  assert.equal(seen, [
    `GET ${at}/plan?features=first-boot,capture,disk-id,sources - Bearer boot.token `,
    `POST ${at}/log?run=aaaaaaaa-1 text/plain; charset=utf-8 Bearer boot.token first\nlast\n`,
    `POST ${at}/done - Bearer boot.token `,
    `POST ${at}/status application/json Bearer boot.token {"status":"failed","reason":"no such disk"}`,
  ])
})

test('a server that only knows /status hears of the end there', async () => {
  const seen: string[] = []
  await using server = await serve((request, response) => {
    seen.push(String(request.url?.split('/').at(-1)))
    response.writeHead(request.url?.endsWith('/done') === true ? 404 : 204).end()
  })
  assert.is((await clientOf(server.url).sendDone()).ok, true)
  assert.equal(seen, ['done', 'status'])
})

test('what may pass is tried again, as the server asks', async () => {
  const answers = [503, 500, 429, 204]
  const waits: string[] = []
  await using server = await serve((_, response) => {
    response.writeHead(answers.shift() ?? 204, { 'retry-after': '0' }).end()
  })
  const told = await clientOf(server.url).sendDone({
    ms: 5000,
    onRetry: ({ reason }, ms) => waits.push(`${reason} ${ms}`),
  })
  assert.is(told.ok, true)
  assert.equal(waits, ['HTTP 503 0', 'HTTP 500 0', 'HTTP 429 0'])
})

test('a no for good is not asked again', async () => {
  let asked = 0
  await using server = await serve((_, response) => {
    asked += 1
    response.writeHead(401).end('{"detail":"the token \\u001b[2J expired"}')
  })
  const told = await clientOf(server.url).sendFailure('x', { ms: 5000 })
  assert.is(told.ok ? '' : told.refusal.reason, 'HTTP 401: the token \\x1b[2J expired')
  assert.is(asked, 1)
})

test('patience ends', async () => {
  const client = clientOf('http://127.0.0.1:2', { retryMs: 20 })
  let tries = 0
  const told = await client.sendDone({
    ms: 200,
    onRetry: () => {
      tries += 1
    },
  })
  assert.is(told.ok ? '' : told.refusal.reason, 'connection refused')
  assert.is(tries > 0, true)
})

const HOSTILE: readonly (readonly [string, RequestListener, RegExp])[] = [
  [
    'a redirect',
    (_, response) => response.writeHead(302, { location: 'http://127.0.0.1:2/' }).end(),
    /^it redirects elsewhere \(HTTP 302\)$/,
  ],
  ['no JSON', (_, response) => response.end('<html>'), /^its answer is not JSON$/],
  [
    'an answer without end',
    (_, response) => response.end(' '.repeat(2 ** 21)),
    /^its answer is larger than 1048576 bytes$/,
  ],
  [
    'an answer that stops',
    (_, response) => response.writeHead(200, { 'content-length': '9' }).write('{'),
    /^no answer within 0\.1 s$/,
  ],
  ['silence', () => {}, /^no answer within 0\.1 s$/],
  ['a hang-up', (request) => request.socket.destroy(), /^connection closed by the server$/],
  ['no HTTP', (request) => request.socket.end('hello\r\n\r\n'), /does not speak HTTP/],
  [
    'an odd detail',
    (_, response) => response.writeHead(422).end('{"detail":[{"msg":"no"}]}'),
    /^HTTP 422: no$/,
  ],
]
for (const [what, answer, reason] of HOSTILE) {
  test(`${what} is a no in words`, async () => {
    await using server = await serve(answer)
    // Only where there is none does time decide.
    const timeoutMs = reason.source.includes('no answer within') ? 100 : 60_000
    const plan = await clientOf(server.url, { timeoutMs }).fetchPlan()
    assert.match(plan.ok ? '' : plan.refusal.reason, reason)
  })
}

test('an abort ends a call and its repeats', async () => {
  await using server = await serve(() => {})
  const ending = new AbortController()
  const asked = clientOf(server.url, { signal: ending.signal }).fetchPlan({ ms: 60_000 })
  setTimeout(() => ending.abort(), 20)
  const plan = await asked
  assert.is(plan.ok ? '' : plan.refusal.reason, 'cancelled')
})

test('of two addresses the first that is our server is taken', async () => {
  await using other = await serve((_, response) => response.end('{"hello":1}'))
  await using ours = await serve((request, response) =>
    response.end(request.url === '/version' ? '{"version":"1.2.3"}' : '{}'),
  )
  assert.is(await find(other.url, ours.url), ours.url)
  assert.is(await find('http://127.0.0.1:2', ours.url), ours.url)
  assert.is(await find(`${ours.url}/lab`, ours.url), ours.url)
  assert.is(await find(other.url, 'http://127.0.0.1:2'), null)
})

/** A port on which nothing listens. */
const GONE = 'http://127.0.0.1:9'
/** Milliseconds. */
const SILENCE = 300

/** Notes each request before it is answered; `/healthz` is answered unless the whole server is silent. */
async function serveSite(answer: RequestListener, isThere = true) {
  const requests: string[] = []
  const http = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    if (request.url !== '/healthz') return answer(request, response)
    if (isThere) response.end('{"status":"ok"}')
  })
  http.listen(0, '127.0.0.1')
  await once(http, 'listening')
  const address = http.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      http.close()
      await once(http, 'close')
    },
  }
}

const named =
  (name: string): RequestListener =>
  (_, response) => {
    response.end(JSON.stringify({ name }))
  }
const silent: RequestListener = () => {}

function siteOf(base: string, others: readonly string[], more: Partial<SiteOptions> = {}) {
  const moves: string[] = []
  const site = createServerSite({
    base,
    others,
    signal: never,
    timeoutMs: 5000,
    silenceMs: SILENCE,
    onMove: (from, to) => moves.push(`${from} ${to}`),
    ...more,
  })
  return { ...site, moves }
}

const post = { method: 'POST', body: { a: 1 } } as const

test('gone: the next one is asked, and from then on it alone', async () => {
  await using two = await serveSite(named('two'))
  const site = siteOf(GONE, [two.url])
  assert.equal(await site.ask('/a', post), { ok: true, value: { name: 'two' } })
  assert.equal(await site.ask('/b', post), { ok: true, value: { name: 'two' } })
  assert.equal(two.requests, ['GET /healthz', 'POST /a', 'POST /b'])
  assert.equal(site.moves, [`${GONE} ${two.url}`])
  assert.is(site.current(), two.url)
})

test('silent, as a process that was stopped: left after its time; the next one gets the request once', async () => {
  await using one = await serveSite(silent, false)
  await using two = await serveSite(named('two'))
  const site = siteOf(one.url, [GONE, two.url])
  const began = performance.now()
  assert.equal(await site.ask('/a', post), { ok: true, value: { name: 'two' } })
  assert.ok(performance.now() - began >= 2 * SILENCE - 50)
  assert.equal(one.requests, ['POST /a', 'GET /healthz'])
  assert.equal(two.requests, ['GET /healthz', 'POST /a'])
})

test('one that holds a request until another has taken over is asked once more, and answers', async () => {
  let tries = 0
  await using one = await serveSite((_, response) => {
    tries += 1
    setTimeout(() => response.end('{"name":"one"}'), tries === 1 ? 10 * SILENCE : 2 * SILENCE)
  })
  await using two = await serveSite(named('two'))
  const site = siteOf(one.url, [two.url])
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'one' } })
  assert.equal([site.current(), site.moves, two.requests], [one.url, [], ['GET /healthz']])
})

test('one that is there and answers nothing is left after its second time', async () => {
  await using one = await serveSite(silent)
  await using two = await serveSite(named('two'))
  const site = siteOf(one.url, [two.url], { timeoutMs: 2 * SILENCE })
  const answer = await site.ask('/a')
  assert.match(answer.ok ? '' : answer.refusal.reason, 'no answer within')
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'two' } })
})

test('one that cannot for now is left for the next; a refusal and a full queue are answers', async () => {
  let status = 503
  await using one = await serveSite((_, response) => response.writeHead(status).end())
  await using two = await serveSite(named('two'))
  const site = siteOf(one.url, [two.url])
  for (status of [404, 429, 401, 503]) {
    const answer = await site.ask('/a')
    assert.is(answer.ok ? 200 : answer.refusal.status, status)
  }
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'two' } })
})

test('two requests to one that cannot for now leave it once', async () => {
  await using one = await serveSite((_, response) => response.writeHead(503).end())
  await using two = await serveSite(named('two'))
  const site = siteOf(one.url, [two.url])
  await Promise.all([site.ask('/a'), site.ask('/b')])
  assert.equal(site.moves, [`${one.url} ${two.url}`])
})

test('one whose certificate is not to be trusted is left for the next', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-site-'))
  const { certificate } = await makeAuthority(folder.path)
  await using one = await startHostileServer((_, response) => response.end('{}'), certificate)
  await using two = await serveSite(named('two'))
  const site = siteOf(one.origin, [two.url])
  assert.equal(await site.ask('/a', post), { ok: true, value: { name: 'two' } })
})

test('nobody is there: the reason of the one that was asked, and the round begins anew', async () => {
  const site = siteOf(GONE, ['http://127.0.0.1:10'])
  const answer = await site.ask('/a')
  assert.match(answer.ok ? '' : answer.refusal.reason, /refused/)
  assert.equal(
    [answer.ok || answer.refusal.isPassing, site.current(), site.moves],
    [true, GONE, []],
  )
})

test('one server alone is asked nothing more than before, and has all its time', async () => {
  await using one = await serveSite((_, response) => {
    setTimeout(() => response.end('{"name":"one"}'), 2 * SILENCE)
  })
  const site = siteOf(one.url, [])
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'one' } })
  assert.equal(one.requests, ['GET /a'])
})

test.run()
