/** The catalog follows its cache service: news come at once where the service reports them, else on demand. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCatalog, createKeptCatalogs } from '#engine/catalog/catalogs.ts'
import { createChanges } from '#kit/host/changes.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, QUIET, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('catalog: news of the cache')

async function openCatalog(url: string) {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-follow-'))
  const setting = { url }
  const changes = createChanges()
  const catalog = await createCatalog({
    url: () => setting.url,
    kept: createKeptCatalogs(join(folder.path, 'catalog.toml')),
    now: () => new Date(),
    log: QUIET,
    changes,
    env: {},
    staleMs: 1_000_000,
    timeoutMs: 2000,
  })
  return {
    catalog,
    set(other: string) {
      setting.url = other
      changes.announce({ topic: 'settings' })
    },
    names: () => catalog.snapshot().entries.map(({ name }) => name),
    async [Symbol.asyncDispose]() {
      await catalog[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('an image that comes, is downloaded anew, or goes is known without asking', async () => {
  const bytes = { now: makeBytes(5000) }
  await using folder = await makeFolder()
  await using source = await startHostileServer((request, response) =>
    sendFile(bytes.now, request, response, { etag: `"${bytes.now[0]}"` }),
  )
  await using served = await serveCache(folder.path)
  await using opened = await openCatalog(served.base)
  const { catalog, names } = opened
  await until(() => catalog.snapshot().error === null)
  const name = await bring(served.cache, { src: `${source.origin}/x.img` })
  await until(() => names().length === 1)
  const before = catalog.snapshot().entries[0]?.sha256
  bytes.now = makeBytes(5000, 2)
  await (
    await served.cache.download(name, { force: true })
  )?.ended
  await until(() => catalog.snapshot().entries[0]?.sha256 !== before)
  assert.is(catalog.renew?.(), undefined, 'nothing to wait for')
  await writeFile(join(folder.path, 'dropped.img'), makeBytes(5000))
  await until(() => names().includes('dropped.img'))
  await served.cache.remove(name, { force: true })
  await until(() => !names().includes(name))
})

test('another service that is set is followed instead', async () => {
  await using folder = await makeFolder()
  await using one = await serveCache(folder.path)
  await using opened = await openCatalog(one.base)
  await until(() => opened.catalog.snapshot().error === null)
  await using second = await makeFolder()
  await using other = await serveCache(second.path)
  opened.set(other.base)
  await until(() => opened.catalog.snapshot().error === null)
  await writeFile(join(second.path, 'b.img'), makeBytes(5000))
  await until(() => opened.names().includes('b.img'))
})

test('a service that does not wait is asked before a plan, once for all who ask together', async () => {
  const now = { entries: [{ name: 'a', src: 'http://h.invalid/a.img' }] }
  await using server = await startHostileServer((_, response) => {
    response.writeHead(200).end(JSON.stringify({ entries: now.entries }))
  })
  await using opened = await openCatalog(server.origin)
  await until(() => opened.catalog.snapshot().error === null)
  const asked = server.seen.length
  now.entries = [{ name: 'b', src: 'http://h.invalid/b.img' }]
  // What was fetched a moment ago is still current.
  await until(() => opened.catalog.renew?.() !== undefined)
  await Promise.all(Array.from({ length: 20 }, () => opened.catalog.renew?.()))
  assert.equal(opened.names(), ['b'])
  assert.is(server.seen.length, asked + 1)
})

test('the cache answers a client that waits when the list changes, or when its time is over', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const first = await fetch(`${served.base}/catalog`)
  await first.body?.cancel()
  assert.is(first.headers.get('accept-prefer'), 'wait')
  const etag = first.headers.get('etag') ?? ''
  const ask = (prefer: string) =>
    fetch(`${served.base}/catalog`, { headers: { 'if-none-match': etag, prefer } })
  assert.is((await ask('wait=1')).status, 304)
  const waiting = ask('respond-async, wait=50')
  await writeFile(join(folder.path, 'a.img'), makeBytes(5000))
  const news = await waiting
  assert.is(news.status, 200)
  assert.is(Object(await news.json()).entries.length, 1)
  for (const prefer of ['wait=x', 'wait=-1', '', 'waiting=9']) {
    assert.is((await ask(prefer)).status, 200, prefer)
  }
  const { etag: current = '' } = Object.fromEntries(news.headers)
  const ended = fetch(`${served.base}/catalog`, {
    headers: { 'if-none-match': current, prefer: 'wait=50' },
  })
  served.cache.endWaiting()
  assert.is((await ended).status, 304)
})

test.run()
