/** Downloads that break off where their source cannot go on: they begin again, a few times. */
import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { makeBytes } from '#test/support/collect.ts'
import {
  type FileBehaviour,
  sendFile,
  startHostileServer,
} from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('cache: downloads that begin again')
const BYTES = makeBytes(1_500_000)
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** Servers that cannot go on in the middle. */
const KINDS: readonly (readonly [string, FileBehaviour])[] = [
  ['no parts', { ranges: false, etag: '"1"' }],
  ['no version', { etag: null }],
  ['neither', { ranges: false, etag: null }],
]

/** A server whose first so many whole answers break off. */
function startBreaking(breaks: number, behaviour: FileBehaviour) {
  const state = { broken: 0 }
  const starting = startHostileServer((request, response) => {
    const range = request.headers.range ?? ''
    const isWhole = request.method === 'GET' && !range.endsWith('=0-0')
    const isCut = isWhole && state.broken < breaks
    if (isCut) state.broken += 1
    sendFile(BYTES, request, response, { ...behaviour, ...(isCut ? { cutAfter: 600_000 } : {}) })
  })
  return { starting, broken: () => state.broken }
}

test('an image comes though its connection breaks off', async () => {
  for (const [kind, behaviour] of KINDS) {
    await using folder = await makeFolder()
    const breaking = startBreaking(3, behaviour)
    await using source = await breaking.starting
    await using served = await serveCache(folder.path)
    await bring(served.cache, { src: `${source.origin}/x.img` })
    const [row] = served.cache.rows()
    assert.equal([row?.state, row?.error], ['ready', null], kind)
    assert.is(row?.entry.sha256, digest(BYTES))
    assert.is(breaking.broken(), 3)
  }
})

test('one that always breaks off fails with the reason', async () => {
  for (const [kind, behaviour] of KINDS) {
    await using folder = await makeFolder()
    const breaking = startBreaking(Infinity, behaviour)
    await using source = await breaking.starting
    await using served = await serveCache(folder.path)
    await bring(served.cache, { src: `${source.origin}/x.img` })
    const [row] = served.cache.rows()
    assert.is(row?.state, 'failed', kind)
    assert.match(row?.error ?? '', /cannot go on/)
    assert.is(breaking.broken(), 5)
    assert.equal(await readdir(join(folder.path, '.cache/blobs')), [])
  }
})

test('a reader that followed the first try is cut off, and gets all of it when it asks again', async () => {
  await using folder = await makeFolder()
  const held: (() => void)[] = []
  let gets = 0
  await using source = await startHostileServer((request, response) => {
    const isWhole = request.method === 'GET' && request.headers.range === undefined
    if (isWhole) gets += 1
    if (!isWhole || gets > 1) sendFile(BYTES, request, response, { ranges: false })
    else {
      response.writeHead(200, { 'content-length': BYTES.length })
      response.write(BYTES.subarray(0, 400_000))
      held.push(() => response.destroy())
    }
  })
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src })
  const download = await served.cache.download('x.img', { force: false })
  await until(() => (served.cache.rows()[0]?.download?.growth.bytes ?? 0) >= 400_000)
  const first = await fetch(blobUrl(served.base, src))
  held.forEach((cut) => cut())
  const whole = await first.arrayBuffer().catch(() => null)
  assert.is(whole, null, 'what comes next is not what it had begun to read')
  await download?.ended
  const again = Buffer.from(await (await fetch(blobUrl(served.base, src))).arrayBuffer())
  assert.ok(again.equals(BYTES))
})

test('what has come stays while the source cannot be reached, and is gone on with', async () => {
  await using folder = await makeFolder()
  const state = { isGone: false, isBack: false }
  await using source = await startHostileServer((request, response) => {
    if (state.isGone && !state.isBack) return response.writeHead(404).end()
    const isProbe = request.method === 'HEAD' || (request.headers.range ?? '').endsWith('=0-0')
    const isCut = !isProbe && !state.isBack
    state.isGone ||= isCut
    sendFile(BYTES, request, response, { etag: '"1"', ...(isCut ? { cutAfter: 600_000 } : {}) })
  })
  await using served = await serveCache(folder.path)
  await bring(served.cache, { src: `${source.origin}/x.img` })
  assert.is(served.cache.rows()[0]?.state, 'failed')
  assert.is((await readdir(join(folder.path, '.cache/parts'))).length, 1)
  // Another try, of which the source sees nothing either.
  await (
    await served.cache.download('x.img', { force: false })
  )?.ended
  assert.is((await readdir(join(folder.path, '.cache/parts'))).length, 1)
  state.isBack = true
  await (
    await served.cache.download('x.img', { force: false })
  )?.ended
  assert.is(served.cache.rows()[0]?.state, 'ready')
  const ranges = source.seen.map(({ headers }) => headers.range ?? '')
  assert.ok(ranges.some((range) => /^bytes=[1-9]/.test(range)))
})

test.run()
