/** Several servers: who is asked when one is gone, silent, slow or unable, and how often each request is sent. */
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerSite, type SiteOptions } from '#flasher/link/server-client.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'

const test = suite('servers of a site')
const never = new AbortController().signal
/** A port on which nothing listens. */
const GONE = 'http://127.0.0.1:9'
/** Milliseconds. */
const SILENCE = 300

/** Notes each request before it is answered; `/healthz` is answered unless the whole server is silent. */
async function serve(answer: RequestListener, isThere = true) {
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
  await using two = await serve(named('two'))
  const site = siteOf(GONE, [two.url])
  assert.equal(await site.ask('/a', post), { ok: true, value: { name: 'two' } })
  assert.equal(await site.ask('/b', post), { ok: true, value: { name: 'two' } })
  assert.equal(two.requests, ['GET /healthz', 'POST /a', 'POST /b'])
  assert.equal(site.moves, [`${GONE} ${two.url}`])
  assert.is(site.current(), two.url)
})

test('silent, as a process that was stopped: left after its time; the next one gets the request once', async () => {
  await using one = await serve(silent, false)
  await using two = await serve(named('two'))
  const site = siteOf(one.url, [GONE, two.url])
  const began = performance.now()
  assert.equal(await site.ask('/a', post), { ok: true, value: { name: 'two' } })
  assert.ok(performance.now() - began >= 2 * SILENCE - 50)
  assert.equal(one.requests, ['POST /a', 'GET /healthz'])
  assert.equal(two.requests, ['GET /healthz', 'POST /a'])
})

test('one that holds a request until another has taken over is asked once more, and answers', async () => {
  let tries = 0
  await using one = await serve((_, response) => {
    tries += 1
    setTimeout(() => response.end('{"name":"one"}'), tries === 1 ? 10 * SILENCE : 2 * SILENCE)
  })
  await using two = await serve(named('two'))
  const site = siteOf(one.url, [two.url])
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'one' } })
  assert.equal([site.current(), site.moves, two.requests], [one.url, [], ['GET /healthz']])
})

test('one that is there and answers nothing is left after its second time', async () => {
  await using one = await serve(silent)
  await using two = await serve(named('two'))
  const site = siteOf(one.url, [two.url], { timeoutMs: 2 * SILENCE })
  const answer = await site.ask('/a')
  assert.match(answer.ok ? '' : answer.refusal.reason, 'no answer within')
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'two' } })
})

test('one that cannot for now is left for the next; a refusal and a full queue are answers', async () => {
  let status = 503
  await using one = await serve((_, response) => response.writeHead(status).end())
  await using two = await serve(named('two'))
  const site = siteOf(one.url, [two.url])
  for (status of [404, 429, 401, 503]) {
    const answer = await site.ask('/a')
    assert.is(answer.ok ? 200 : answer.refusal.status, status)
  }
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'two' } })
})

test('two requests to one that cannot for now leave it once', async () => {
  await using one = await serve((_, response) => response.writeHead(503).end())
  await using two = await serve(named('two'))
  const site = siteOf(one.url, [two.url])
  await Promise.all([site.ask('/a'), site.ask('/b')])
  assert.equal(site.moves, [`${one.url} ${two.url}`])
})

test('one whose certificate is not to be trusted is left for the next', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-site-'))
  const { certificate } = await makeAuthority(folder.path)
  await using one = await startHostileServer((_, response) => response.end('{}'), certificate)
  await using two = await serve(named('two'))
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
  await using one = await serve((_, response) => {
    setTimeout(() => response.end('{"name":"one"}'), 2 * SILENCE)
  })
  const site = siteOf(one.url, [])
  assert.equal(await site.ask('/a'), { ok: true, value: { name: 'one' } })
  assert.equal(one.requests, ['GET /a'])
})

test.run()
