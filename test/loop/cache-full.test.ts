import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, openCache, until } from '#test/support/server/image-cache.ts'

const test = suite('cache: a full disk')
const MIB = 1024 * 1024
const BYTES = randomBytes(30 * MIB)

/** A file system of its own, so that it can be full. */
function mountMemory(mebibytes: number) {
  const path = mkdtempSync(join(tmpdir(), 'flasher-full-'))
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', path])
  return {
    path,
    [Symbol.dispose]() {
      execFileSync('umount', [path])
      rmSync(path, { recursive: true })
    },
  }
}

test('an image that cannot fit is refused before it is downloaded, with numbers and a hint', async () => {
  using disk = mountMemory(80)
  await using source = await startHostileServer((request, response) =>
    sendFile(BYTES, request, response),
  )
  await using cache = await openCache(disk.path)
  await bring(cache, { src: `${source.origin}/x.img` })
  const error = cache.rows()[0]?.error ?? ''
  assert.match(
    error,
    /no space left on the disk of the cache: 31\.5 MB needed, 8\d\.\d MB free\. Remove/,
  )
  assert.equal(await readdir(join(disk.path, '.cache/parts')), [])
})

test('a disk that others fill meanwhile ends the download, and gives back what it took', async () => {
  using disk = mountMemory(100)
  let isHeld = true
  await using source = await startHostileServer((request, response) => {
    const isBody = request.method === 'GET' && request.headers.range !== 'bytes=0-0'
    if (!isBody || !isHeld) sendFile(BYTES, request, response)
    else {
      response.writeHead(200, { 'content-length': BYTES.length, etag: '"one"' })
      response.write(BYTES.subarray(0, 10 * MIB))
      void until(async () => !isHeld).then(() => response.end(BYTES.subarray(10 * MIB)))
    }
  })
  await using cache = await openCache(disk.path)
  await cache.add({ src: `${source.origin}/x.img` })
  const download = await cache.download('x.img', { force: false })
  await until(() => (download?.growth.bytes ?? 0) >= 10 * MIB)
  const filler = join(disk.path, 'filler.bin')
  await writeFile(filler, Buffer.alloc(200 * MIB)).catch(() => {})
  assert.ok((await stat(filler)).size > 50 * MIB)
  isHeld = false
  await download?.ended
  assert.is(cache.rows()[0]?.state, 'failed')
  assert.match(
    cache.rows()[0]?.error ?? '',
    /^no space left on the disk of the cache \(.*free\).*Remove images/,
  )
  assert.equal(await readdir(join(disk.path, '.cache/parts')), [])
  assert.equal(await readdir(join(disk.path, '.cache/blobs')), [])
  await writeFile(filler, '')
  await (
    await cache.download('x.img', { force: false })
  )?.ended
  assert.is(cache.rows()[0]?.state, 'ready', 'with room again it can be fetched')
})

test('where the cache may remove anything, the oldest makes room on the disk itself', async () => {
  using disk = mountMemory(64 + 70)
  await using source = await startHostileServer((request, response) => {
    const first = Buffer.from(request.url ?? '')
    sendFile(Buffer.concat([first, BYTES.subarray(first.length)]), request, response)
  })
  await using cache = await openCache(disk.path, { maxBytes: 1000 * MIB })
  for (const seed of [1, 2, 3])
    await bring(cache, { name: `n${seed}`, src: `${source.origin}/${seed}.img` })
  assert.equal(
    cache.rows().map(({ state }) => state),
    ['absent', 'ready', 'ready'],
  )
})

if (process.getuid?.() === 0) test.run()
