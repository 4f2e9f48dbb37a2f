import { createHash } from 'node:crypto'
import { appendFile, readdir, readFile, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CacheRow } from '#cache/store/cache-rows.ts'
import { blobUrl, keyOf, fileUrl } from '#engine/catalog/rules/cache-entry.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import {
  captureClient,
  type CapturedImage,
  makeSigner,
  SOURCE,
} from '#test/support/capture/uploads.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  bring,
  makeFolder,
  openCache,
  serveCache,
  until,
} from '#test/support/server/image-cache.ts'

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

const BYTES = makeBytes(300_000)
const isDone = ({ state }: CacheRow) => state !== 'checking'

test('a file that is dropped in is offered under three addresses', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const name = 'Debian 13 (amd64) 100%?#.img.zst'
  const stored = zstdCompressSync(BYTES)
  await writeFile(join(folder.path, name), stored)
  await until(() => served.cache.rows()[0]?.state === 'ready')
  const catalog: unknown = await (await fetch(`${served.base}/catalog`)).json()
  const [{ added_at, ...entry }, ...others] = Object(catalog).entries
  assert.ok(Math.abs(Date.now() - Date.parse(added_at)) < 600_000, added_at)
  assert.equal(others, [])
  const src = 'file:///Debian 13 (amd64) 100%25%3F%23.img.zst'
  const resolved = `${served.base}/files/${encodeURIComponent(name)}`
  assert.equal(entry, {
    name,
    src,
    resolved_src: resolved,
    format: 'img.zst',
    arch: 'x86_64',
    sha256: digest(stored),
    size_bytes: stored.length,
  })
  for (const url of [resolved, blobUrl(served.base, src), blobUrl(served.base, resolved)]) {
    const answer = await fetch(url, { headers: { range: 'bytes=10-19' } })
    assert.is(answer.status, 206, url)
    assert.is(answer.headers.get('etag'), `"${digest(stored)}"`)
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(stored.subarray(10, 20)))
  }
  // Another server's file of the same name is another file.
  const foreign = blobUrl(served.base, `http://elsewhere.invalid/files/${encodeURIComponent(name)}`)
  assert.is((await fetch(foreign)).status, 404)
})

test('a file is offered whatever its name, as long as that is text', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const names = [
    'a%20b.img',
    'a b.img',
    '%25.img',
    '%2fetc%2fa.img',
    '%2e%2e.img',
    '%E9.img',
    '%.img',
    'a\\b.img',
    '[x] & <y>;="z".img',
    "~'@:+*|.img",
    '日本語 é.img',
    `${'n'.repeat(251)}.img`,
  ]
  for (const [at, name] of names.entries()) {
    await writeFile(join(folder.path, name), makeBytes(600, at))
  }
  await until(
    () => served.cache.rows().length === names.length && served.cache.rows().every(isDone),
  )
  for (const [at, name] of names.entries()) {
    const row = served.cache.rows().find(({ fileName }) => fileName === name)
    assert.equal([row?.state, row?.error], ['ready', null], name)
    const src = row?.entry.src ?? ''
    for (const url of [fileUrl(served.base, name), blobUrl(served.base, src)]) {
      const got = Buffer.from(await (await fetch(url)).arrayBuffer())
      assert.ok(got.equals(makeBytes(600, at)), url)
    }
  }
})

test('a file that is still being copied waits until it stops growing', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path, { settleMs: 400 })
  const path = join(folder.path, 'slow.img')
  for (let at = 0; at < 3; at += 1) {
    await appendFile(path, BYTES.subarray(at * 100_000, (at + 1) * 100_000))
    await served.cache.scan()
    assert.is(served.cache.rows()[0]?.state, 'checking')
    assert.is((await fetch(`${served.base}/files/slow.img`)).status, 404)
  }
  await until(() => served.cache.rows()[0]?.state === 'ready')
  assert.is(served.cache.rows()[0]?.entry.sha256, digest(BYTES))
  await appendFile(path, 'more')
  await served.cache.scan()
  assert.is(served.cache.rows()[0]?.state, 'checking')
})

test('the digest beside a file is checked, whichever comes first', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  await writeFile(join(folder.path, 'a.img'), BYTES)
  await until(() => cache.rows()[0]?.state === 'ready')
  const sidecar = join(folder.path, 'a.img.sha256')
  await writeFile(sidecar, `${'0'.repeat(64)}  a.img\n`)
  await cache.scan()
  assert.is(cache.rows()[0]?.state, 'failed')
  assert.match(cache.rows()[0]?.error ?? '', /a\.img\.sha256 says 0000/)
  assert.is(await cache.openFile('a.img'), null)
  await writeFile(sidecar, `${digest(BYTES).toUpperCase()} *a.img\n`)
  await cache.scan()
  assert.is(cache.rows()[0]?.state, 'ready')
  await writeFile(sidecar, 'nothing of the kind')
  await cache.scan()
  assert.match(cache.rows()[0]?.error ?? '', /not a list of SHA-256 digests/)
})

test('what is no image, leads away or hides is not offered', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  await symlink('/etc/passwd', join(folder.path, 'passwd.img'))
  for (const name of ['notes.txt', '.hidden.img', 'empty.img', 'rootfs.tar.gz', 'line\nend.img']) {
    await writeFile(join(folder.path, name), name === 'empty.img' ? '' : 'x')
  }
  await cache.scan()
  const rows = cache.rows().map(({ entry, state, error }) => [entry.name, state, error])
  assert.equal(rows, [
    ['line\nend.img', 'failed', 'its name has characters that an address cannot have'],
    ['rootfs.tar.gz', 'failed', 'a tarball cannot be flashed: extract it first'],
  ])
})

test('a file that is changed while it is read breaks the reading off', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  const path = join(folder.path, 'a.img')
  await writeFile(path, BYTES)
  await until(() => cache.rows()[0]?.state === 'ready')
  await using reader = await cache.openFile('a.img')
  const { signal } = new AbortController()
  const into = Buffer.alloc(200_000)
  assert.is(await reader?.read(into, 0, signal), 200_000)
  await writeFile(path, makeBytes(300_000, 2))
  const fault = await faultOf(async () => reader?.read(into, 200_000, signal))
  assert.match(fault.message, /changed while it was read/)
})

test('digests are remembered: a restart reads no file again', async () => {
  await using folder = await makeFolder()
  await writeFile(join(folder.path, 'a.img'), BYTES)
  {
    await using cache = await openCache(folder.path)
    await until(() => cache.rows()[0]?.state === 'ready')
  }
  await using cache = await openCache(folder.path, { settleMs: 1_000_000 })
  assert.is(cache.rows()[0]?.state, 'ready')
})

test('removing one removes the file, and a file that goes by itself is gone', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  for (const name of ['a.img', 'b.img']) await writeFile(join(folder.path, name), BYTES)
  await until(() => cache.rows().filter(({ state }) => state === 'ready').length === 2)
  await cache.remove('a.img', { force: false })
  assert.equal((await readdir(folder.path)).toSorted(), ['.cache', 'b.img'])
  await unlink(join(folder.path, 'b.img'))
  await cache.scan()
  assert.equal(cache.rows(), [])
})

const { file: FILE, indexSha256: INDEX } = await packBuffer(makeBytes(9_000_000))
const digestOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const SHA256 = digestOf(FILE)
const NAME = 'web-42.img.zst'

/** Changes what one of the cache's records says, as another process would have left it. */
async function changeRecord(folder: string, kind: string, news: object): Promise<void> {
  const records = join(folder, '.cache/records')
  const [name = ''] = (await readdir(records)).filter((each) => each.startsWith(`${kind}+`))
  const path = join(records, name)
  const record = { ...Object(JSON.parse(await readFile(path, 'utf8'))), ...news }
  await writeFile(path, JSON.stringify(record))
}

test('a capture whose end was announced', async () => {
  await using folder = await makeFolder()
  const end: CapturedImage['end'] = { bytes: FILE.length, sha256: SHA256, index_sha256: INDEX }
  let token = ''
  let id: unknown
  {
    await using served = await serveCache(folder.path)
    token = (await makeSigner(join(folder.path, '.cache/secret')))(NAME)
    const machine = captureClient(served.base, token)
    id = (await machine.begin(NAME, SOURCE)).body['id']
    await machine.send(id, 0, FILE)
  }
  await changeRecord(folder.path, 'capture', { announced: { ...end, warnings: [] } })
  await using served = await serveCache(folder.path)
  await until(() => served.cache.captures.list()[0]?.status === 'waiting')
  const machine = captureClient(served.base, token)
  assert.is((await machine.finish(id, end)).status, 200)
})

test('an upload of which all had come', async () => {
  await using folder = await makeFolder()
  let id = ''
  {
    await using cache = await openCache(folder.path)
    const request = { name: NAME, size_bytes: FILE.length, sha256: SHA256, version: null }
    ;({ id } = await cache.uploads.create(request))
    const part = { from: 0, to: FILE.length, total: FILE.length }
    await cache.uploads.append(
      id,
      part,
      (async function* () {
        yield FILE
      })(),
    )
  }
  await changeRecord(folder.path, 'upload', { isWhole: true })
  await using cache = await openCache(folder.path)
  await until(() => cache.rows()[0]?.state === 'ready')
  const [row] = cache.rows()
  assert.equal([row?.entry.sha256, row?.entry.index_sha256], [SHA256, INDEX])
  assert.is((await cache.uploads.complete(id, 10_000)).sha256, SHA256, 'a client that asks again')
  assert.equal(cache.uploads.list(), [])
})

test('a download of which all had come, though its source is gone', async () => {
  await using folder = await makeFolder()
  const src = 'http://127.0.0.1:9/a.img.zst'
  const entry = { src, resolved_src: null }
  const key = keyOf({ ...EMPTY, ...entry, name: 'a' })
  {
    await using cache = await openCache(folder.path)
    await cache.add({ src, name: 'a' })
  }
  await writeFile(join(folder.path, `.cache/parts/${key}.part`), FILE)
  const note = { version: '"1"', sizeBytes: FILE.length, durableBytes: FILE.length, bootId: null }
  await writeFile(
    join(folder.path, `.cache/records/part+${key}.json`),
    JSON.stringify({ ...note, sha256: SHA256, isWanted: true }),
  )
  await using cache = await openCache(folder.path)
  await until(() => cache.rows()[0]?.state === 'ready')
  const [row] = cache.rows()
  assert.equal([row?.entry.sha256, row?.entry.index_sha256], [SHA256, INDEX])
  assert.equal(await readdir(join(folder.path, '.cache/parts')), [])
})

const EMPTY = {
  format: null,
  arch: null,
  sha256: null,
  size_bytes: null,
  description: null,
  netboot_ref: null,
}

test.run()
