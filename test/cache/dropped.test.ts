import { createHash } from 'node:crypto'
import { appendFile, readdir, symlink, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { fileUrl } from '#engine/catalog/rules/image-upload.ts'
import type { CacheRow } from '#cache/store/cache-rows.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import { makeFolder, openCache, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('cache: dropped files')
const BYTES = makeBytes(300_000)
const isDone = ({ state }: CacheRow) => state !== 'checking'
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

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
    ['line\nend.img', 'failed', 'its name holds characters that no address can'],
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

test.run()
