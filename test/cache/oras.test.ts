import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { importCatalog, isManifestUrl } from '#cache/store/image-cache.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import {
  bring,
  makeFolder,
  openCache,
  serveCache,
  until,
} from '#test/support/server/image-cache.ts'
import { startHostileServer, sendFile } from '#test/support/http/hostile-server.ts'
import { digestOf, pushImage, pushIndex, startRegistry } from '#test/support/http/registry.ts'

const test = suite('cache: oras')
const BYTES = makeBytes(1_500_000)
const OTHER = makeBytes(400_000, 2)
const hex = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('entries are downloaded from a registry, by tag and by architecture', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await using served = await serveCache(folder.path)
  const amd = await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img.zst' }])
  const arm = await pushImage(registry, 'lab/disk:v2', [{ bytes: OTHER, title: 'arm.img.zst' }])
  await pushIndex(registry, 'lab/disk:all', { amd64: amd, arm64: arm })
  const src = `oras://${registry.host}/lab/disk:v1`
  await bring(served.cache, { src })
  await bring(served.cache, { src: `oras://${registry.host}/lab/disk:all`, arch: 'arm64' })
  const find = (ending: string) =>
    served.cache.rows().find(({ entry }) => entry.src.endsWith(ending))
  const [tagged, chosen] = [find(':v1'), find(':all')]
  assert.equal([tagged?.state, tagged?.error, tagged?.entry.sha256], ['ready', null, hex(BYTES)])
  assert.equal([chosen?.state, chosen?.entry.sha256], ['ready', hex(OTHER)])
  const answer = await fetch(blobUrl(served.base, src))
  assert.ok(BYTES.equals(Buffer.from(await answer.arrayBuffer())))
})

test('a pinned entry whose tag moved on is refused before a byte of it comes', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await using cache = await openCache(folder.path)
  await pushImage(registry, 'lab/disk:v1', [{ bytes: OTHER, title: 'disk.img.zst' }])
  await bring(cache, { src: `oras://${registry.host}/lab/disk:v1`, sha256: hex(BYTES) })
  const [row] = cache.rows()
  assert.equal([row?.state, row?.download], ['failed', null])
  assert.match(row?.error ?? '', new RegExp(`holds ${hex(OTHER)}, but ${hex(BYTES)}`))
})

test('all images of a catalog that lies in a registry are listed', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await using cache = await openCache(folder.path)
  const at = `oras://${registry.host}/lab`
  const toml = `version = 1\n[[images]]\nname = "disk"\nsrc = "${at}/disk:v1"\n`
  await pushImage(registry, 'lab/catalog:v1', [{ bytes: Buffer.from(toml), title: 'catalog.toml' }])
  assert.ok(isManifestUrl(`${at}/catalog:v1`))
  const imported = await importCatalog(cache, `${at}/catalog:v1`, {})
  assert.equal(imported, { added: ['disk'], known: [], flaws: [] })
  assert.is(cache.rows()[0]?.entry.src, `${at}/disk:v1`)
})

test('which addresses are catalogs', () => {
  const digest = `sha256:${'0'.repeat(64)}`
  const yes = [
    'x.toml',
    'http://h/C.TOML?x=1',
    'oras://h/a/catalog:v1',
    'oras://h/a/my.toml:v1',
    'oras://h/catalog:v1',
  ]
  for (const url of [...yes, `oras://h:5000/a/lab-catalog@${digest}`]) assert.ok(isManifestUrl(url))
  const no = ['http://h/catalog', 'oras://h/catalog/disk:v1', 'oras://h/a/disk:catalog', 'a.img']
  for (const url of no) assert.not.ok(isManifestUrl(url), url)
})

test('a page that asks for a catalog reads no file of this machine', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  for (const url of ['/etc/x.toml', 'file:///etc/x.toml', './x.toml']) {
    const fault = await faultOf(() => importCatalog(cache, url, {}))
    assert.match(fault.message, /read from an http/)
  }
})

test('goes on after a restart where it stopped, though the registry names no version', async () => {
  await using folder = await makeFolder()
  const starts: (string | undefined)[] = []
  let limit = 600_000
  await using registry = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) {
      const layers = [{ digest: digestOf(BYTES), size: BYTES.length }]
      response.end(JSON.stringify({ layers }))
      return
    }
    if (request.method === 'GET') starts.push(request.headers.range)
    const isWhole = limit >= BYTES.length || request.headers.range === 'bytes=0-0'
    if (isWhole || request.method === 'HEAD') sendFile(BYTES, request, response)
    else {
      response.writeHead(200, { 'content-length': BYTES.length })
      response.write(BYTES.subarray(0, limit))
    }
  })
  const src = `oras://${registry.origin.slice('http://'.length)}/lab/disk:v1`
  {
    await using cache = await openCache(folder.path, { checkpointBytes: 100_000 })
    await cache.add({ src })
    await cache.download('disk-v1', { force: false })
    await until(() => (cache.rows()[0]?.download?.growth.bytes ?? 0) >= 600_000)
  }
  limit = BYTES.length
  await using cache = await openCache(folder.path)
  await until(() => cache.rows()[0]?.state === 'ready')
  assert.is(cache.rows()[0]?.entry.sha256, hex(BYTES))
  assert.match(starts.at(-1) ?? '', /^bytes=600000-1499999$/)
})

test.run()
