/** Sources that are looked at again on a schedule: they moved on, stayed, fail, or say nothing. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeBytes } from '#test/support/collect.ts'
import {
  sendFile,
  startHostileServer,
  type FileBehaviour,
} from '#test/support/http/hostile-server.ts'
import { pushImage, startRegistry } from '#test/support/http/registry.ts'
import {
  bring,
  makeFolder,
  openCache,
  serveCache,
  PASSWORD,
  until,
} from '#test/support/server/image-cache.ts'
import type { ImageCache } from '#cache/store/image-cache.ts'
import { parseListing, renderListed } from '#cache/rules/catalog.ts'
import { ageOf, hasMovedOn } from '#engine/catalog/rules/upstream.ts'

import { login } from '#test/support/server/flasher-web.ts'

const test = suite('cache: sources that move on')
const BYTES = makeBytes(300_000)
const NEWER = makeBytes(300_000, 2)
const OFTEN = { upstreamSeconds: 0.02 }

/** A file that a test replaces, or whose server it breaks. */
async function startRolling(behaviour: FileBehaviour = {}) {
  const state = { bytes: BYTES, behaviour, status: 200, type: '' }
  const server = await startHostileServer((request, response) => {
    if (state.status !== 200) response.writeHead(state.status).end()
    else if (state.type !== '') response.writeHead(200, { 'content-type': state.type }).end('<p>')
    else sendFile(state.bytes, request, response, state.behaviour)
  })
  return { state, server }
}

function rowOf(cache: ImageCache) {
  const [row] = cache.rows()
  if (row === undefined) throw new Error('nothing is listed')
  return row
}

/** The catalog, its long form, the command and the page. */
async function checkSaid(base: string, seen: string | null) {
  const listing: unknown = await (await fetch(`${base}/catalog?all`)).json()
  const [state] = parseListing(listing).map((image) => renderListed(image, false).state)
  assert.is(state, `ready, upstream moved on (seen ${seen})`)
  const offered: unknown = await (await fetch(`${base}/catalog`)).json()
  assert.is(Object(offered).entries[0].upstream_moved_at, seen)
  assert.is(Object(offered).entries[0].upstream_looked_at, undefined)
  const { cookie } = await login(base, PASSWORD)
  const page = await fetch(`${base}/ui/dashboard`, { headers: { cookie } })
  assert.match(await page.text(), /newer at its source/)
}

test('it says that the source moved on, and replaces nothing until somebody asks', async () => {
  for (const kind of [{}, { head: 405 }, { head: 'hang-up' }] as const) {
    await using folder = await makeFolder()
    const { state, server } = await startRolling(kind)
    await using _ = server
    await using served = await serveCache(folder.path, OFTEN)
    const row = () => rowOf(served.cache)
    const name = await bring(served.cache, { src: `${server.origin}/x.img` })
    await until(() => row().lookedAt !== null)
    assert.is(row().movedAt, null)
    const digest = row().entry.sha256
    Object.assign(state, { bytes: NEWER, behaviour: { ...kind, etag: '"two"' } })
    await until(() => row().movedAt !== null)
    const seen = row().movedAt
    const looked = row().lookedAt
    await until(() => row().lookedAt !== looked)
    assert.equal([row().state, row().entry.sha256, row().movedAt], ['ready', digest, seen])
    await checkSaid(served.base, seen)
    await (
      await served.cache.download(name, { force: true })
    )?.ended
    assert.is(row().movedAt, null)
    assert.is.not(row().entry.sha256, digest)
  }
})

test('an error, a page or nothing changes nothing but the time of the look', async () => {
  await using folder = await makeFolder()
  const { state, server } = await startRolling()
  await using _ = server
  await using cache = await openCache(folder.path, OFTEN)
  const row = () => cache.rows()[0]
  await bring(cache, { src: `${server.origin}/x.img` })
  for (const trouble of [{ status: 503 }, { status: 404 }, { status: 200, type: 'text/html' }]) {
    Object.assign(state, trouble)
    const looks = server.seen.length
    await until(() => server.seen.length > looks + 6)
    const looked = row()?.lookedAt
    await until(() => row()?.lookedAt !== looked)
    assert.equal([row()?.state, row()?.movedAt, row()?.error], ['ready', null, null])
  }
})

test('a tag of a registry that names another image moved on; so it is after a restart', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  {
    await using cache = await openCache(folder.path, OFTEN)
    await bring(cache, { src: `oras://${registry.host}/lab/disk:v1` })
    await until(() => (cache.rows()[0]?.lookedAt ?? null) !== null)
    assert.is(cache.rows()[0]?.movedAt, null)
    await pushImage(registry, 'lab/disk:v1', [{ bytes: NEWER, title: 'disk.img' }])
    await until(() => (cache.rows()[0]?.movedAt ?? null) !== null)
  }
  await using again = await openCache(folder.path)
  assert.type(again.rows()[0]?.movedAt, 'string')
})

test('nobody is asked unless it is set', async () => {
  await using folder = await makeFolder()
  const { server } = await startRolling()
  await using _ = server
  await using cache = await openCache(folder.path)
  await bring(cache, { src: `${server.origin}/x.img` })
  const asked = server.seen.length
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.is(server.seen.length, asked)
  assert.is(cache.rows()[0]?.lookedAt, null)
})

test('what decides', () => {
  const kept = { sha256: 'a', sizeBytes: 5, version: '"1"' }
  const found = { sizeBytes: null, version: null }
  assert.not.ok(hasMovedOn(kept, found))
  assert.not.ok(hasMovedOn(kept, { ...found, version: 'Thu, 01 Jan 2026 00:00:00 GMT' }))
  assert.not.ok(hasMovedOn(kept, { ...found, version: '"2"', sha256: 'a' }))
  assert.ok(hasMovedOn(kept, { ...found, version: '"2"' }))
  assert.ok(hasMovedOn({ ...kept, version: null }, { ...found, sizeBytes: 6 }))
  assert.ok(hasMovedOn(kept, { ...found, version: '"1"', servedSha256: 'b' }))
  assert.is(ageOf(Date.parse('2030-01-01'), Date.parse('2026-01-01')), 0)
})

test.run()
