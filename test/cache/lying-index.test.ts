/** Images in frames whose index lies: the cache decodes each once, however it came, and offers none of them. */
import { createHash } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { readFrameMap } from '#engine/image/zstd-decoder.ts'
import { openCaptureLab } from '#test/support/capture/uploads.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { makeContent, makeDiskImage } from '#test/support/disk/disk-images.ts'
import { ENCODINGS } from '#test/support/disk/encodings.ts'
import {
  callZeros,
  changeFlags,
  changeImageDigest,
  packBuffer,
} from '#test/support/disk/packed-image.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  asOperator,
  bring,
  makeFolder,
  openCache,
  serveCache,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('cache: an index that lies')
const FRAME = 4 << 20
const IMAGE = Buffer.concat([makeContent(FRAME, 1), makeContent(FRAME, 2), makeContent(70_000, 3)])
const { file: GOOD } = await packBuffer(IMAGE)
const LIES: readonly (readonly [string, Buffer, RegExp])[] = [
  ['zeros', callZeros(GOOD, 1), /frame 1 does not match the index/],
  ['image', changeImageDigest(GOOD), /does not match its index/],
  ['flags', changeFlags(GOOD, 0), /the entry of frame 0 in its index is wrong/],
]
const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const json = { 'content-type': 'application/json', ...asOperator }

const offered = async (base: string): Promise<readonly unknown[]> =>
  Object(await (await fetch(`${base}/catalog`)).json()).entries

test('downloaded', async () => {
  for (const [name, lying, reason] of LIES) {
    await using folder = await makeFolder()
    await using source = await startHostileServer((request, response) =>
      sendFile(lying, request, response),
    )
    await using served = await serveCache(folder.path)
    const src = `${source.origin}/a.img.zst`
    await served.cache.add({ src, sha256: digestOf(lying) })
    const download = await served.cache.download('a.img.zst', { force: false })
    await download?.ended
    const [row] = served.cache.rows()
    assert.is(row?.state, 'failed', name)
    assert.match(row?.error ?? '', reason)
    assert.equal(await offered(served.base), [])
    assert.equal(await readdir(join(folder.path, '.cache/blobs')), [])
    assert.equal(await readdir(join(folder.path, '.cache/parts')), [])
    const asked = source.seen.length
    const miss = await fetch(blobUrl(served.base, src))
    assert.is(miss.status, 404)
    assert.match(await miss.text(), reason)
    assert.is(source.seen.length, asked, 'it would be the same again')
  }
})

test('put into the folder', async () => {
  for (const [name, lying, reason] of LIES) {
    await using folder = await makeFolder()
    await writeFile(join(folder.path, 'a.img.zst'), lying)
    await using served = await serveCache(folder.path)
    await until(() => served.cache.rows()[0]?.state === 'failed')
    assert.match(served.cache.rows()[0]?.error ?? '', reason, name)
    await served.cache.scan()
    assert.is(served.cache.rows()[0]?.state, 'failed')
    assert.equal(await offered(served.base), [])
    assert.is((await fetch(`${served.base}/files/a.img.zst`)).status, 404)
  }
})

test('uploaded: the reason is repeated, and nothing is kept', async () => {
  for (const [name, lying, reason] of LIES) {
    await using folder = await makeFolder()
    await using served = await serveCache(folder.path)
    const body = JSON.stringify({ name: 'a.img.zst', size_bytes: lying.length })
    const begun = await fetch(`${served.base}/uploads`, { method: 'POST', headers: json, body })
    const { id } = Object(await begun.json())
    const one = `${served.base}/uploads/${id}`
    const range = { 'content-range': `bytes 0-${lying.length - 1}/${lying.length}` }
    const headers = { ...asOperator, ...range }
    await fetch(one, { method: 'PATCH', headers, body: new Uint8Array(lying) })
    for (const _ of [1, 2]) {
      const answer = await fetch(`${one}/complete`, { method: 'POST', headers: asOperator })
      assert.is(answer.status, 422, name)
      assert.match(Object(await answer.json()).detail, reason)
    }
    assert.equal(served.cache.uploads.list(), [])
    assert.equal(await readdir(join(folder.path, '.cache/uploads')), [])
    assert.equal(await offered(served.base), [])
  }
})

test('captured', async () => {
  await using lab = await openCaptureLab()
  const name = 'web-42.img.zst'
  for (const [at, [, lying, reason]] of LIES.entries()) {
    const end = { bytes: lying.length, sha256: digestOf(lying), index_sha256: await indexOf(lying) }
    const machine = lab.machine(lab.sign(name, { order: `order-200${at}` }))
    const id = (await machine.begin(name)).body['id']
    await machine.send(id, 0, lying)
    for (const _ of [1, 2]) {
      const ended = await machine.finish(id, end)
      assert.is(ended.status, 422)
      assert.match(String(ended.body['detail']), reason)
    }
  }
  assert.equal(lab.cache.captures.list(), [])
  assert.equal(await readdir(join(lab.folder, '.cache/captures')), [])
})

/** As the machine says it, which has made the index. */
async function indexOf(file: Buffer): Promise<string> {
  const readAt = async (into: Buffer, at: number) => file.copy(into, 0, at)
  const map = await readFrameMap({ name: 'a', sizeBytes: file.length, readAt }).catch(() => null)
  return map?.indexSha256 ?? '1'.repeat(64)
}

const PAGE = Buffer.from(`<!DOCTYPE html><html>${'<p>Sign in</p>\n'.repeat(200)}</html>`)
const TRUE_IMAGE = makeDiskImage(2 << 20)

interface Sent {
  readonly body: Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** Each body under its path, sent whole. */
const startSource = (bodies: Readonly<Record<string, Sent>>) =>
  startHostileServer((request, response) => {
    const { body = Buffer.alloc(0), headers = {} } = bodies[(request.url ?? '').slice(1)] ?? {}
    response.writeHead(200, { 'content-length': body.length, ...headers })
    response.end(request.method === 'HEAD' ? undefined : body)
  })

const html = { 'content-type': 'text/html; charset=utf-8' }
const REFUSED: Readonly<Record<string, readonly [Sent, RegExp]>> = {
  'page.img': [{ body: PAGE, headers: html }, /web page \(Content-Type: text\/html\)/],
  'page.img.gz': [{ body: PAGE }, /holds an HTML page/],
  'page.qcow2': [{ body: PAGE }, /holds an HTML page/],
  'page.bin': [{ body: PAGE }, /holds an HTML page/],
  'typed.img': [{ body: TRUE_IMAGE, headers: html }, /web page/],
  'none.img': [{ body: Buffer.alloc(0) }, /empty/],
  'error.img': [{ body: Buffer.from('{"errors": [{"code": "DENIED"}]}') }, /holds a JSON document/],
  's3.img': [{ body: Buffer.from('<?xml version="1.0"?>\n<Error/>') }, /holds an XML document/],
  'sums.img': [{ body: Buffer.from(`${'0'.repeat(64)}  d.img\n`) }, /holds plain text/],
  'packed.img': [{ body: gzipSync(TRUE_IMAGE) }, /holds gz data/],
  'encoded.img': [
    { body: gzipSync(TRUE_IMAGE), headers: { 'content-encoding': 'gzip' } },
    /the server sent it encoded \(Content-Encoding: gzip\)/,
  ],
}

test('what a source sends instead of an image is not offered, and nothing of it stays', async () => {
  await using folder = await makeFolder()
  const bodies = Object.entries(REFUSED).map(([name, [sent]]) => [name, sent] as const)
  await using source = await startSource(Object.fromEntries(bodies))
  await using cache = await openCache(folder.path)
  for (const [name, [, words]] of Object.entries(REFUSED)) {
    await bring(cache, { src: `${source.origin}/${name}` })
    const row = cache.rows().find(({ entry }) => entry.name === name)
    assert.is(row?.state, 'failed', name)
    assert.match(row?.error ?? '', words, name)
  }
  assert.equal(await readdir(join(folder.path, '.cache/blobs')), [])
  assert.equal(await readdir(join(folder.path, '.cache/parts')), [])
})

test("what is nobody's, and what an operator marked, is offered", async () => {
  await using folder = await makeFolder()
  await using source = await startSource({
    'noise.img': { body: makeBytes(5000) },
    'zeros.img': { body: Buffer.alloc(5000) },
    'labelled.img.gz': { body: gzipSync(TRUE_IMAGE), headers: { 'content-encoding': 'x-gzip' } },
    'page.img': { body: PAGE, headers: html },
    'rootfs.tar.gz': { body: gzipSync(TRUE_IMAGE) },
  })
  await using cache = await openCache(folder.path)
  for (const name of ['noise.img', 'zeros.img', 'labelled.img.gz', 'rootfs.tar.gz']) {
    await bring(cache, { src: `${source.origin}/${name}` })
  }
  await bring(cache, { src: `${source.origin}/page.img`, any_content: true })
  assert.equal(
    cache.rows().map(({ state }) => state),
    ['ready', 'ready', 'ready', 'ready', 'ready'],
  )
  assert.is(cache.rows().find(({ entry }) => entry.name === 'page.img')?.entry.any_content, true)
})

const cut = (bytes: Buffer) => bytes.subarray(0, bytes.length - 100)
const bzip2 = pipeThrough(['bzip2', '-c'], TRUE_IMAGE)
const xz = pipeThrough(['xz', '-c'], TRUE_IMAGE)
const qcow2 = ENCODINGS.find(({ name }) => name === 'qcow2')?.encode(TRUE_IMAGE) ?? Buffer.alloc(0)
const ENDS: Readonly<Record<string, readonly [Buffer, Buffer]>> = {
  'a.img.gz': [gzipSync(TRUE_IMAGE), cut(gzipSync(TRUE_IMAGE))],
  'a.img.bz2': [bzip2, cut(bzip2)],
  'a.img.xz': [xz, cut(xz)],
  'a.img.zst': [zstdCompressSync(TRUE_IMAGE), cut(zstdCompressSync(TRUE_IMAGE))],
  'a.qcow2': [qcow2, qcow2.subarray(0, qcow2.length - 128 * 1024)],
}

test('a file that is dropped in cut off is not offered, until the rest of it comes', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  for (const [name, [, bytes]] of Object.entries(ENDS))
    await writeFile(join(folder.path, name), bytes)
  await until(() => cache.rows().filter(({ state }) => state === 'failed').length === 5)
  for (const { entry, state, error } of cache.rows()) {
    assert.is(state, 'failed', entry.name)
    assert.match(error ?? '', /incomplete or damaged|cut off/, entry.name)
    assert.is(await cache.openFile(entry.name), null)
  }
  for (const [name, [bytes]] of Object.entries(ENDS))
    await writeFile(join(folder.path, name), bytes)
  await until(() => cache.rows().every(({ state }) => state === 'ready'))
})

test('a page that is dropped in is not offered, also after a restart', async () => {
  await using folder = await makeFolder()
  await writeFile(join(folder.path, 'page.img'), PAGE)
  const refused = /page\.img is not a disk image: it holds an HTML page/
  for (const _ of ['first', 'second']) {
    await using cache = await openCache(folder.path)
    await until(() => cache.rows()[0]?.state === 'failed')
    assert.match(cache.rows()[0]?.error ?? '', refused)
  }
})

test('an uploaded page is refused, and nothing of it stays', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const { uploads } = served.cache
  const { id } = await uploads.create({
    name: 'page.img',
    size_bytes: PAGE.length,
    sha256: null,
    version: null,
  })
  async function* bytes() {
    yield PAGE
  }
  await uploads.append(id, { from: 0, to: PAGE.length, total: PAGE.length }, bytes())
  const fault = await faultOf(() => uploads.complete(id, 60_000))
  assert.is(fault.code, 'plan-refused')
  assert.equal(uploads.list(), [])
  assert.equal(served.cache.rows(), [])
  const answer = await fetch(`${served.base}/uploads`, { headers: asOperator })
  assert.is(answer.status, 200)
})

test.run()
