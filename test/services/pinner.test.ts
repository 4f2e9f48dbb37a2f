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

test.run()
