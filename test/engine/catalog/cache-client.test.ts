/** Requests to a cache service end, go through the configured proxy, and follow no redirect elsewhere. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCacheClient, createPinner } from '#engine/catalog/cache-client.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createChanges } from '#kit/host/changes.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startConnectProxy } from '#test/support/http/connect-proxy.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { makeFolder, serveCache, TOKEN, until } from '#test/support/server/image-cache.ts'

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
  isFault(await pin({}), 'upstream-failed', /certificate was issued by an unknown authority/)
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

test('tells the cache what machines are bound to, and again when that changes', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const src = 'https://h.invalid/x.img'
  const ref = refOf(src)
  await served.cache.add({ name: 'x', src })
  const bound = { refs: [null, ref.ok ? ref.value : '', ref.ok ? ref.value : ''] }
  const changes = createChanges()
  const said: string[] = []
  await using given = new AsyncDisposableStack()
  given.use(
    createPinner({
      url: () => served.base,
      token: async () => TOKEN,
      bound: async () => bound.refs,
      holder: 'flasher',
      env: {},
      changes,
      log: { warn: (message) => said.push(message) },
      waitMs: 1,
    }),
  )
  await until(() => served.cache.rows()[0]?.isPinned === true)
  assert.is(served.cache.rows()[0]?.machines, 2)
  const change = () => changes.announce({ topic: 'machine', mac: 'aa:bb:cc:dd:ee:ff' })
  bound.refs = bound.refs.slice(1, 2)
  change()
  await until(() => served.cache.rows()[0]?.machines === 1)
  bound.refs = []
  change()
  await until(() => served.cache.rows()[0]?.isPinned === false)
  assert.equal(said, [])
})

test('asks nothing twice, and takes no for an answer', async () => {
  let status = 204
  await using server = await startHostileServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end())
  })
  const changes = createChanges()
  const said: string[] = []
  let ref = 'a'.repeat(64)
  await using given = new AsyncDisposableStack()
  given.use(
    createPinner({
      url: () => server.origin,
      token: async () => 'token',
      bound: async () => [ref],
      holder: 'flasher',
      env: {},
      changes,
      log: { warn: (message) => said.push(message) },
      waitMs: 1,
    }),
  )
  await until(() => server.seen.length === 1)
  const change = () => changes.announce({ topic: 'settings' })
  change()
  ref = 'b'.repeat(64)
  change()
  await until(() => server.seen.length === 2)
  status = 404
  ref = 'c'.repeat(64)
  change()
  await until(() => server.seen.length === 3)
  status = 401
  ref = 'd'.repeat(64)
  change()
  await until(() => said.length === 1)
  assert.match(said[0] ?? '', /could not report/)
})

test('says nothing without a token, the same trouble once, and ends without an answer', async () => {
  const answers = [401, 401, 401]
  await using server = await startHostileServer((request, response) => {
    const status = answers.shift()
    // Then no answer at all.
    if (status !== undefined) request.resume().on('end', () => response.writeHead(status).end())
  })
  const changes = createChanges()
  const said: string[] = []
  let token: string | null = null
  const bound: string[] = []
  const pinner = createPinner({
    url: () => server.origin,
    token: async () => token,
    bound: async () => bound,
    holder: 'flasher',
    env: {},
    changes,
    log: { warn: (message) => said.push(message) },
    waitMs: 1,
  })
  await sleep(50)
  assert.is(server.seen.length, 0)
  token = 'token'
  for (const count of [1, 2, 3, 4]) {
    bound.push(String(count).repeat(64))
    changes.announce({ topic: 'catalog' })
    await until(() => server.seen.length === count)
  }
  assert.is(said.length, 1)
  await pinner[Symbol.asyncDispose]()
  assert.is(said.length, 1)
})

/** A cache that answers with `status`, or not at all while that is null, and the pinner that tells it. */
async function startTelling(first: number | null) {
  const cache = { status: first }
  const server = await startHostileServer((request, response) => {
    const { status } = cache
    if (status !== null) request.resume().on('end', () => response.writeHead(status).end())
    else request.socket.destroy()
  })
  const changes = createChanges()
  const said: string[] = []
  const bound: string[] = ['a'.repeat(64)]
  const pinner = createPinner({
    url: () => server.origin,
    token: async () => 'token',
    bound: async () => bound,
    holder: 'flasher',
    env: {},
    changes,
    log: { warn: (message) => said.push(message) },
    waitMs: 1,
  })
  return {
    cache,
    said,
    bound,
    asked: () => server.seen.length,
    announce: changes.announce,
    /** A machine comes by, and what follows from that has long happened. */
    async come() {
      changes.announce({ topic: 'machine', mac: 'aa:bb:cc:dd:ee:ff' })
      await sleep(20)
    },
    async [Symbol.asyncDispose]() {
      await pinner[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

for (const status of [401, 403, 404, 507]) {
  test(`what was refused with ${status} is not said again until there is news`, async () => {
    await using telling = await startTelling(status)
    await until(() => telling.asked() === 1)
    for (let machine = 0; machine < 10; machine += 1) await telling.come()
    assert.is(telling.asked(), 1)
    telling.announce({ topic: 'catalog' })
    await until(() => telling.asked() === 2)
    await telling.come()
    assert.is(telling.asked(), 2)
    telling.announce({ topic: 'settings' })
    await until(() => telling.asked() === 3)
    telling.bound.push('b'.repeat(64))
    await telling.come()
    await until(() => telling.asked() === 4)
    await telling.come()
    assert.is(telling.asked(), 4)
    assert.is(telling.said.length, status === 404 ? 0 : 1, 'another make has no such thing')
  })
}

test('who did not answer is asked again, and each kind of trouble is said once', async () => {
  await using telling = await startTelling(null)
  await until(() => telling.asked() === 1)
  await telling.come()
  await until(() => telling.asked() === 2)
  await telling.come()
  await until(() => telling.asked() === 3)
  await until(() => telling.said.length === 1)
  telling.cache.status = 500
  await telling.come()
  await until(() => telling.said.length === 2)
  telling.cache.status = 204
  telling.announce({ topic: 'catalog' })
  await until(() => telling.asked() === 5)
  telling.cache.status = 500
  telling.bound.push('b'.repeat(64))
  await telling.come()
  await until(() => telling.said.length === 3)
  assert.match(
    telling.said[0] ?? '',
    /could not report .*: no cache answers at .*closed by the server/,
  )
  assert.match(telling.said[1] ?? '', /HTTP 500/)
})

test('news that comes while it is being refused is not lost', async () => {
  const held = Promise.withResolvers<void>()
  await using server = await startHostileServer((request, response) => {
    request.resume().on('end', async () => {
      await held.promise
      response.writeHead(503).end()
    })
  })
  const changes = createChanges()
  await using _pinner = createPinner({
    url: () => server.origin,
    token: async () => 'token',
    bound: async () => [],
    holder: 'flasher',
    env: {},
    changes,
    log: { warn() {} },
    waitMs: 1,
  })
  await until(() => server.seen.length === 1)
  changes.announce({ topic: 'catalog' })
  await sleep(20)
  held.resolve()
  await until(() => server.seen.length === 2)
})

test.run()
