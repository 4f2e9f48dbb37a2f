/** Requests to a cache service end, go through the configured proxy, and follow no redirect elsewhere. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { createCacheClient } from '#engine/catalog/cache-client.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startConnectProxy } from '#test/support/http/connect-proxy.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { makeFolder, serveCache, TOKEN } from '#test/support/server/image-cache.ts'

const test = suite('createCacheClient')

/** What it comes to: an answer, or what was thrown. */
const settle = (asked: Promise<unknown>) => asked.catch((thrown: unknown) => thrown)

const isFault = (thrown: unknown, code: string, words: RegExp) => {
  assert.ok(thrown instanceof Fault, String(thrown))
  assert.is(thrown.code, code)
  assert.match(thrown.message, words)
}

test('a cache that takes the call and never answers is given up, with a signal or without', async () => {
  await using server = await startHostileServer(() => {})
  for (const signal of [undefined, new AbortController().signal]) {
    const client = createCacheClient({
      base: server.origin,
      token: null,
      timeoutMs: 50,
      ...(signal === undefined ? {} : { signal }),
    })
    const thrown = await Promise.race([settle(client.list()), sleep(10_000, 'still waiting')])
    isFault(thrown, 'upstream-failed', /no cache answers at http:\/\/127\.0\.0\.1:\d+: .*0\.05 s/)
  }
})

test('so is one whose answer has no end', async () => {
  await using server = await startHostileServer((_, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).write('{"entries":[')
  })
  const { signal } = new AbortController()
  const client = createCacheClient({ base: server.origin, token: null, timeoutMs: 50, signal })
  const thrown = await Promise.race([settle(client.list()), sleep(10_000, 'still waiting')])
  isFault(thrown, 'upstream-failed', /no cache answers/)
})

test('the signal ends what is asked', async () => {
  await using server = await startHostileServer(() => ending.abort())
  const ending = new AbortController()
  const client = createCacheClient({ base: server.origin, token: null, signal: ending.signal })
  const thrown = await settle(client.list())
  assert.ok(thrown instanceof Error && thrown.name === 'AbortError', String(thrown))
})

test('an authority of its own and a proxy count as for every download', async () => {
  await using folder = await makeFolder()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using server = await startHostileServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end())
  }, certificate)
  await using proxy = await startConnectProxy()
  const pin = (env: Readonly<Record<string, string>>) =>
    settle(
      createCacheClient({ base: server.origin, token: TOKEN, env }).pin({
        holder: 'flasher',
        refs: ['a'.repeat(64)],
        machines: [1],
        captured: [],
      }),
    )
  isFault(await pin({}), 'upstream-failed', /certificate comes from an unknown authority/)
  assert.equal(await pin({ FLASHER_CA_FILE: caFile }), { ok: true, value: null })
  assert.equal(await pin({ FLASHER_CA_FILE: caFile, https_proxy: proxy.address }), {
    ok: true,
    value: null,
  })
  assert.equal(proxy.asked, [`CONNECT ${new URL(server.origin).host}`])
  assert.equal(
    server.seen.map(({ method, url, headers }) => [method, url, headers.authorization]),
    [
      ['POST', '/pins', `Bearer ${TOKEN}`],
      ['POST', '/pins', `Bearer ${TOKEN}`],
    ],
  )
})

test('nobody is sent elsewhere', async () => {
  await using other = await startHostileServer((_, response) => void response.end('{}'))
  await using server = await startHostileServer((request, response) => {
    request.resume().on('end', () => response.writeHead(307, { location: other.origin }).end())
  })
  const client = createCacheClient({ base: server.origin, token: TOKEN })
  isFault(await settle(client.list()), 'upstream-failed', /HTTP 307/)
  const pinned = await client.pin({ holder: 'flasher', refs: [], machines: [], captured: [] })
  isFault(pinned.ok ? null : pinned.refusal, 'upstream-failed', /HTTP 307/)
  assert.is(other.seen.length, 0)
})

test('an operator adds, lists and removes; what is refused is said in its words', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const client = createCacheClient({ base: served.base, token: TOKEN })
  await client.add({ name: 'x y', src: 'https://h.invalid/x.img' })
  assert.match(JSON.stringify(await client.list()), '"name":"x y"')
  await client.remove('x y', { force: true })
  isFault(await settle(client.remove('x y', { force: false })), 'not-found', /x y/)
  const stranger = createCacheClient({ base: served.base, token: 'of another' })
  const thrown = await settle(stranger.add({ name: 'z', src: 'https://h.invalid/z.img' }))
  isFault(thrown, 'login-required', /./)
})

test.run()
