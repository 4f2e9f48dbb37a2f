import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderImageEntry } from '#engine/catalog/rules/catalog.ts'
import { renderManifest } from '#engine/catalog/rules/manifest.ts'
import { createCatalog, createKeptCatalogs } from '#engine/catalog/catalogs.ts'
import { createChanges } from '#kit/host/changes.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('catalog client')

/** The response of a deployed cache service; its empty texts mean "none". */
const RECORDED = `{"url": "http://127.0.0.1:18090/catalog.toml", "env_url": "http://127.0.0.1:18090/catalog.toml",
 "fetched_at": "2026-11-21T00:32:22Z", "last_error": "",
 "entries": [{"name": "a-x86_64", "src": "http://127.0.0.1:18090/a.img.gz", "format": "img.gz", "arch": "x86_64",
              "sha256": "6257b0bd50cd2e88f425646e374096341121ab92b58e69cdc68a7f0f79a60513", "size_bytes": 500000},
             {"name": "nosi debian-13-headless netboot bundle (x86_64, 2026.W30)", "format": "tar.gz", "arch": "x86_64",
              "src": "oras://registry.example/nosi/debian-13-headless-netboot:2026.W30", "description": "..."}]}`

async function makeFixture(url: string | null, options: { readonly staleMs?: number } = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-catalog-'))
  const said: string[] = []
  const changes = createChanges()
  const announced: string[] = []
  changes.listen(({ topic }) => announced.push(topic))
  const setting = { url }
  const open = () =>
    createCatalog({
      url: () => setting.url,
      kept: createKeptCatalogs(join(folder, 'catalog.toml')),
      now: () => new Date('2026-11-21T10:00:00Z'),
      log: { warn: (message) => said.push(message) },
      changes,
      env: {},
      staleMs: options.staleMs ?? 1_000_000,
      timeoutMs: 2000,
    })
  const close = () => rm(folder, { recursive: true, force: true })
  return { folder, said, changes, announced, setting, open, [Symbol.asyncDispose]: close }
}

/** A server whose answer to `/catalog` can be changed, with ETags. */
async function startCatalog() {
  const now = { text: RECORDED, status: 200, etag: '"one"' }
  const answer = (request: IncomingMessage, response: ServerResponse) => {
    if (request.headers['if-none-match'] === now.etag) response.writeHead(304).end()
    else response.writeHead(now.status, { etag: now.etag }).end(now.text)
  }
  return { ...(await startHostileServer(answer)), now }
}

test('reads what a deployed cache service says', async () => {
  await using server = await startCatalog()
  await using fixture = await makeFixture(server.origin)
  await using catalog = await fixture.open()
  const { entries, error, fetchedAt, skipped } = await catalog.refresh()
  assert.equal([error, fetchedAt, skipped], [null, '2026-11-21T10:00:00.000Z', []])
  assert.equal(entries.map(renderImageEntry)[0], {
    name: 'a-x86_64',
    format: 'img.gz',
    size_bytes: 500_000,
    url: 'http://127.0.0.1:18090/a.img.gz',
    ref: 'cc5bfe89844eda41f16af83f30986b16f9b1fbf2ac0cb4b08dc7e2fd830f1cec',
    sha_short: '6257b0bd50cd',
    arch: 'x86_64',
  })
})

/** What nobody takes for text. */
const NOISE = Buffer.from([0, 1, 2, 3, 4])

test('reads what our own cache says, rows and manifest alike', async () => {
  await using folder = await makeFolder()
  await using source = await startHostileServer((_request, response) => {
    response.writeHead(200, { 'content-length': 5 }).end(NOISE)
  })
  await using served = await serveCache(folder.path)
  await bring(served.cache, { name: 'na"me\n(x86_64)', src: `${source.origin}/x.img.zst` })
  await served.cache.add({ name: 'not here', src: `${source.origin}/y.img.zst` })
  await writeFile(join(folder.path, 'dropped.img'), NOISE)
  await until(() => served.cache.rows().filter(({ state }) => state === 'ready').length === 2)
  await using fixture = await makeFixture(`${served.base}/`)
  await using catalog = await fixture.open()
  const { entries, skipped, error } = await catalog.refresh()
  assert.equal([error, skipped], [null, []])
  const rows = entries.map(renderImageEntry)
  assert.equal(
    rows.map(({ name, format, url }) => [name, format, url]),
    [
      ['na"me\n(x86_64)', 'img.zst', `${source.origin}/x.img.zst`],
      ['dropped.img', 'img', `${served.base}/files/dropped.img`],
    ],
  )
  assert.is(renderManifest(entries).match(/\[\[images\]\]/g)?.length, rows.length)
  for (const { url, sha256 } of entries) {
    const answer = await fetch(url)
    assert.is(await answer.text(), NOISE.toString())
    assert.is(answer.headers.get('x-withcache-sha256'), sha256)
  }
})

test('starts with what was kept, and keeps it while the service cannot be reached', async () => {
  const server = await startCatalog()
  await using fixture = await makeFixture(server.origin)
  {
    await using catalog = await fixture.open()
    assert.is((await catalog.refresh()).entries.length, 2)
  }
  await server[Symbol.asyncDispose]()
  await using catalog = await fixture.open()
  assert.is(catalog.snapshot().entries.length, 2, 'at once, without waiting')
  assert.is(catalog.snapshot().error, null)
  const after = await catalog.refresh()
  assert.is(after.entries.length, 2)
  assert.is(after.fetchedAt, '2026-11-21T10:00:00.000Z')
  assert.match(
    after.error ?? '',
    /the catalog of http:\/\/127\.0\.0\.1:\d+\/? cannot be read: connection refused/,
  )
  await catalog.refresh()
  assert.is(fixture.said.length, 1, 'the same failure is said once')
})

test('an answer that is none keeps the list; a better one clears the error', async () => {
  await using server = await startCatalog()
  const { now } = server
  await using fixture = await makeFixture(server.origin)
  await using catalog = await fixture.open()
  await catalog.refresh()
  const bad = [
    ['<html>', 200, /not a catalog/],
    ['gone', 500, /HTTP 500/],
    ['', 302, /redirected to nowhere/],
  ] as const
  for (const [text, status, words] of bad) {
    Object.assign(now, { text, status, etag: `"${text}${status}"` })
    const { entries, error } = await catalog.refresh()
    assert.is(entries.length, 2)
    assert.match(error ?? '', words)
  }
  Object.assign(now, { text: '{"entries":[]}', status: 200, etag: '"empty"' })
  assert.equal([(await catalog.refresh()).entries.length, catalog.snapshot().error], [0, null])
})

test('asks only whether it changed, and tells only when it did', async () => {
  await using server = await startCatalog()
  await using fixture = await makeFixture(server.origin)
  {
    await using catalog = await fixture.open()
    await catalog.refresh()
    const told = fixture.announced.length
    await catalog.refresh()
    assert.is(fixture.announced.length, told)
    assert.is(catalog.snapshot(), catalog.snapshot())
  }
  await using catalog = await fixture.open()
  assert.is((await catalog.refresh()).entries.length, 2)
  const conditions = server.seen.map(({ headers }) => headers['if-none-match'])
  assert.is(conditions[0], undefined)
  assert.ok(conditions.slice(1).every((tag) => tag === '"one"'))
})

test('many who ask at once cost one question', async () => {
  const held: ServerResponse[] = []
  await using server = await startHostileServer((_request, response) => void held.push(response))
  await using fixture = await makeFixture(server.origin)
  await using catalog = await fixture.open()
  const answers = Promise.all(Array.from({ length: 20 }, () => catalog.refresh()))
  await until(() => held.length > 0)
  for (const response of held) response.end(RECORDED)
  assert.ok((await answers).every(({ entries }) => entries.length === 2))
  assert.is(server.seen.length, 1)
})

test('another address takes effect at once, and the old list says nothing of it', async () => {
  await using first = await startCatalog()
  await using second = await startCatalog()
  second.now.text = '{"entries":[{"name":"other","src":"https://h/o.img"}]}'
  await using fixture = await makeFixture(first.origin)
  await using catalog = await fixture.open()
  await catalog.refresh()
  fixture.setting.url = second.origin
  assert.equal(catalog.snapshot().entries, [])
  fixture.changes.announce({ topic: 'settings' })
  await until(() => catalog.snapshot().entries[0]?.name === 'other')
  fixture.setting.url = null
  assert.match(catalog.snapshot().error ?? '', /no cache service is set/)
  assert.equal((await catalog.refresh()).entries, [])
  fixture.setting.url = 'not an address'
  assert.match((await catalog.refresh()).error ?? '', /not the address of a cache service/)
})

test('a stale list is fetched again by itself', async () => {
  await using server = await startCatalog()
  const { now } = server
  await using fixture = await makeFixture(server.origin, { staleMs: 20 })
  await using catalog = await fixture.open()
  await until(() => catalog.snapshot().entries.length === 2)
  Object.assign(now, { text: '{"entries":[]}', etag: '"two"' })
  await until(() => catalog.snapshot().entries.length === 0)
})

test('a service that never ends, or says too much, is given up', async () => {
  await using endless = await startHostileServer((_request, response) => {
    const block = Buffer.alloc(1 << 20, ' ')
    const more = () => {
      while (!response.destroyed && response.write(block));
      response.once('drain', more)
    }
    more()
  })
  await using silent = await startHostileServer(() => {})
  const rows = [
    [endless, /larger than|no answer within 2 s/],
    [silent, /no answer within 2 s|no data for 2 s/],
  ] as const
  for (const [server, words] of rows) {
    await using fixture = await makeFixture(server.origin)
    await using catalog = await fixture.open()
    assert.match((await catalog.refresh()).error ?? '', words)
  }
})

test('what was kept and is damaged, or of another service, is fetched anew', async () => {
  await using server = await startCatalog()
  await using fixture = await makeFixture(server.origin)
  const path = join(fixture.folder, 'catalog.toml')
  {
    await using catalog = await fixture.open()
    await catalog.refresh()
  }
  const text = await readFile(path, 'utf8')
  for (const damaged of ['', '{', text.slice(0, -40), text.replaceAll(server.origin, 'http://x')]) {
    await writeFile(path, damaged)
    await using catalog = await fixture.open()
    assert.is((await catalog.refresh()).entries.length, 2)
  }
})

test.run()
