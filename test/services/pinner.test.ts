import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '../../runtime/core/ref.ts'
import { createFeed } from '../../runtime/services/feed.ts'
import { createPinner } from '../../runtime/services/pinner.ts'
import { startHostileServer } from '../support/hostile-server.ts'
import { makeFolder, serveCache, TOKEN, until } from '../support/image-cache.ts'

const test = suite('createPinner')

test('tells the cache what machines are bound to, and again when that changes', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const src = 'https://h.invalid/x.img'
  const ref = refOf(src)
  await served.cache.add({ name: 'x', src })
  const bound = { refs: [null, ref.ok ? ref.value : '', ref.ok ? ref.value : ''] }
  const feed = createFeed()
  const said: string[] = []
  await using given = new AsyncDisposableStack()
  given.use(
    createPinner({
      url: () => served.base,
      token: async () => TOKEN,
      bound: async () => bound.refs,
      holder: 'flasher',
      feed,
      log: { warn: (message) => said.push(message) },
      waitMs: 1,
    }),
  )
  await until(() => served.cache.rows()[0]?.isPinned === true)
  bound.refs = []
  feed.announce({ topic: 'machine', mac: 'aa:bb:cc:dd:ee:ff' })
  await until(() => served.cache.rows()[0]?.isPinned === false)
  assert.equal(said, [])
})

test('asks nothing twice, and takes no for an answer', async () => {
  let status = 204
  await using server = await startHostileServer((request, response) => {
    request.resume().on('end', () => response.writeHead(status).end())
  })
  const feed = createFeed()
  const said: string[] = []
  let ref = 'a'.repeat(64)
  await using given = new AsyncDisposableStack()
  given.use(
    createPinner({
      url: () => server.origin,
      token: async () => 'token',
      bound: async () => [ref],
      holder: 'flasher',
      feed,
      log: { warn: (message) => said.push(message) },
      waitMs: 1,
    }),
  )
  await until(() => server.seen.length === 1)
  const change = () => feed.announce({ topic: 'settings' })
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
  assert.match(said[0] ?? '', /was not told/)
})

test('says nothing without a token, the same trouble once, and ends without an answer', async () => {
  const answers = [401, 401, 401]
  await using server = await startHostileServer((request, response) => {
    const status = answers.shift()
    // Then no answer at all.
    if (status !== undefined) request.resume().on('end', () => response.writeHead(status).end())
  })
  const feed = createFeed()
  const said: string[] = []
  let token: string | null = null
  const bound: string[] = []
  const pinner = createPinner({
    url: () => server.origin,
    token: async () => token,
    bound: async () => bound,
    holder: 'flasher',
    feed,
    log: { warn: (message) => said.push(message) },
    waitMs: 1,
  })
  await sleep(50)
  assert.is(server.seen.length, 0)
  token = 'token'
  for (const count of [1, 2, 3, 4]) {
    bound.push(String(count).repeat(64))
    feed.announce({ topic: 'catalog' })
    await until(() => server.seen.length === count)
  }
  assert.is(said.length, 1)
  await pinner[Symbol.asyncDispose]()
  assert.is(said.length, 1)
})

test.run()
