import { createHash } from 'node:crypto'
import { readdir, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, openCache } from '#test/support/server/image-cache.ts'

const test = suite('cache: room')
const blobs = async (folder: string) => (await readdir(join(folder, '.cache/blobs'))).length
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** `/3/x.img` holds 100,000 bytes made of the seed 3; with `?same`, of the seed 0. */
const origin = () =>
  startHostileServer((request, response) => {
    const seed = request.url?.includes('same') ? 0 : Number(request.url?.split('/')[1])
    sendFile(makeBytes(100_000, seed), request, response)
  })

/** A clock that goes on by a second each time it is looked at. */
function createClock() {
  let seconds = 1_700_000_000
  return () => {
    seconds += 1
    return new Date(seconds * 1000)
  }
}

const statesOf = (cache: Awaited<ReturnType<typeof openCache>>) =>
  Object.fromEntries(cache.rows().map(({ entry, state }) => [entry.name, state]))

test('what was not used for longest goes; what is bound or being read stays', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using cache = await openCache(folder.path, { maxBytes: 350_000, now: createClock() })
  const src = (seed: number) => `${source.origin}/${seed}/x.img`
  for (const seed of [1, 2, 3]) await bring(cache, { name: `n${seed}`, src: src(seed) })
  const ref = refOf(src(1))
  assert.ok(ref.ok)
  await cache.pin('a-server', [ref.ok ? ref.value : ''])
  await using reading = await cache.open(src(2), '')
  await bring(cache, { name: 'n4', src: src(4) })
  assert.equal(statesOf(cache), { n1: 'ready', n2: 'ready', n3: 'absent', n4: 'ready' })
  assert.is(reading?.sizeBytes, 100_000)
  assert.is(await blobs(folder.path), 3)
  // n4 is the only one left that may go.
  await bring(cache, { name: 'n5', src: src(5) })
  assert.equal(statesOf(cache).n4, 'absent')
  await using reading5 = await cache.open(src(5), '')
  await bring(cache, { name: 'n6', src: src(6) })
  assert.is(reading5?.sizeBytes, 100_000)
  assert.is(statesOf(cache).n6, 'failed')
  assert.match(cache.rows().at(-1)?.error ?? '', /the cache is full.*in use/)
})

test('reading is using: the order outlives a restart', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  const now = createClock()
  const src = (seed: number) => `${source.origin}/${seed}/x.img`
  {
    await using cache = await openCache(folder.path, { maxBytes: 250_000, now })
    for (const seed of [1, 2]) await bring(cache, { name: `n${seed}`, src: src(seed) })
    await (await cache.open(src(1), ''))?.[Symbol.asyncDispose]()
  }
  await using cache = await openCache(folder.path, { maxBytes: 250_000, now })
  await bring(cache, { name: 'n3', src: src(3) })
  assert.equal(statesOf(cache), { n1: 'ready', n2: 'absent', n3: 'ready' })
})

test('an image larger than the cache is refused before a byte of it comes', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using cache = await openCache(folder.path, { maxBytes: 99_999 })
  await bring(cache, { src: `${source.origin}/1/x.img` })
  assert.match(cache.rows()[0]?.error ?? '', /larger than the cache may be/)
  assert.equal(await readdir(join(folder.path, '.cache/parts')), [])
})

test('bytes go with the last entry that has them', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using cache = await openCache(folder.path)
  const src = `${source.origin}/1/x.img`
  await bring(cache, { name: 'a', src })
  await bring(cache, { name: 'b', src })
  await bring(cache, { name: 'c', src: `${source.origin}/1/x.img?same` })
  await bring(cache, { name: 'd', src: `${source.origin}/2/x.img?same` })
  assert.is(await blobs(folder.path), 2, 'c and d share one')
  await cache.remove('a', { force: false })
  assert.equal(statesOf(cache), { b: 'ready', c: 'ready', d: 'ready' })
  await cache.remove('b', { force: false })
  assert.is(await blobs(folder.path), 1)
  await cache.remove('c', { force: false })
  assert.is(await blobs(folder.path), 1)
  await cache.remove('d', { force: false })
  assert.is(await blobs(folder.path), 0)
})

test('an entry whose digest is here already needs no download', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using cache = await openCache(folder.path)
  await bring(cache, { name: 'a', src: `${source.origin}/1/x.img` })
  await cache.add({ name: 'b', src: 'https://no.invalid/x', sha256: digest(makeBytes(100_000, 1)) })
  assert.equal(statesOf(cache), { a: 'ready', b: 'ready' })
})

test('what machines are bound to is removed only by force, and a server takes its word back', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using cache = await openCache(folder.path)
  const src = `${source.origin}/1/x.img`
  await bring(cache, { name: 'a', src })
  const ref = refOf(src)
  await cache.pin('one', [ref.ok ? ref.value : ''])
  await cache.pin('two', [ref.ok ? ref.value : ''])
  await cache.pin('one', [])
  const fault = await faultOf(() => cache.remove('a', { force: false }))
  assert.is(fault.code, 'conflict')
  await cache.remove('a', { force: true })
  assert.equal(cache.rows(), [])
})

test('the machines of all servers are counted, and unknown where one of them does not count', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  const src = `${source.origin}/1/x.img`
  const ref = refOf(src)
  const refs = [ref.ok ? ref.value : '']
  {
    await using cache = await openCache(folder.path)
    const count = () => cache.rows()[0]?.machines
    await bring(cache, { name: 'a', src })
    assert.is(count(), null, 'no server has said anything')
    await cache.pin('one', refs, [3])
    await cache.pin('two', refs, [4])
    assert.is(count(), 7)
    await cache.pin('two', [], [])
    assert.is(count(), 3)
  }
  await using cache = await openCache(folder.path)
  assert.is(cache.rows()[0]?.machines, 3, 'also after a restart')
  await cache.pin('old', refs)
  assert.equal([cache.rows()[0]?.machines, cache.rows()[0]?.isPinned], [null, true])
  await cache.pin('old', [], [])
  await cache.pin('one', [], [])
  assert.is(cache.rows()[0]?.machines, 0)
})

test('what was lost or left over behind its back is noticed at the next start', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  {
    await using cache = await openCache(folder.path)
    for (const seed of [1, 2]) {
      await bring(cache, { name: `n${seed}`, src: `${source.origin}/${seed}/x.img` })
    }
  }
  const data = join(folder.path, '.cache')
  await unlink(join(data, 'blobs', digest(makeBytes(100_000, 1))))
  await writeFile(join(data, 'blobs', 'a'.repeat(64)), 'left over')
  await writeFile(join(data, 'parts', `${'b'.repeat(64)}.part`), 'left over')
  await writeFile(join(data, 'records', `blob+${'c'.repeat(64)}.json`), '{"sha256":')
  await using cache = await openCache(folder.path)
  assert.equal(statesOf(cache), { n1: 'absent', n2: 'ready' })
  assert.is(await blobs(folder.path), 1)
  assert.equal(await readdir(join(data, 'parts')), [])
})

test('two caches never share a folder', async () => {
  await using folder = await makeFolder()
  await using first = await openCache(folder.path)
  assert.equal(first.rows(), [])
  const fault = await faultOf(() => openCache(folder.path))
  assert.is(fault.code, 'conflict')
  assert.match(fault.message, /another flasher-cache serves/)
})

test.run()
