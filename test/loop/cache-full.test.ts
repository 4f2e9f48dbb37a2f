import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { readdir, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { request as ask } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeCapture, openCaptureLab, uploadCapture } from '#test/support/capture/uploads.ts'
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

const { file: FILE, end: END } = await makeCapture(24 * MIB)
const NAME = 'web-42.img.zst'
const PART = 8 * MIB

/** The cache's folder on a file system of its own, so that it can be full. */
async function openFull(mebibytes: number) {
  const lab = await openCaptureLab({
    prepare(folder) {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder])
    },
    leave(folder) {
      execFileSync('umount', [folder])
    },
  })
  const token = lab.sign(NAME)
  return { lab, token, machine: lab.machine(token) }
}

test('a part that does not fit is refused; with room again the capture goes on', async () => {
  const { lab, machine } = await openFull(2 * 64 + 20)
  await using _ = lab
  const id = (await machine.begin(NAME)).body['id']
  assert.is((await machine.send(id, 0, FILE.subarray(0, PART))).status, 204)
  const filler = join(lab.folder, 'filler.bin')
  await writeFile(filler, Buffer.alloc(72 * MIB))
  const refused = await machine.send(id, PART, FILE.subarray(PART, 2 * PART))
  assert.equal([refused.status, await machine.offset(id)], [507, String(PART)])
  await writeFile(filler, '')
  execFileSync('mount', ['-o', 'remount,size=164m', lab.folder])
  assert.is((await machine.send(id, PART, FILE.subarray(PART))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
})

test('a disk that others fill during a part keeps what was safe before', async () => {
  const { lab, token, machine } = await openFull(64 + 110)
  await using _ = lab
  const id = String((await machine.begin(NAME)).body['id'])
  assert.is((await machine.send(id, 0, FILE.subarray(0, PART))).status, 204)
  const { promise: answered, resolve, reject } = Promise.withResolvers<number | undefined>()
  const sending = ask(`${lab.base}/captures/${id}`, {
    method: 'PATCH',
    headers: {
      authorization: `Bearer ${token}`,
      'upload-offset': PART,
      'content-length': FILE.length - PART,
    },
  })
  sending.on('response', (answer) => resolve(answer.resume().statusCode)).on('error', reject)
  sending.write(FILE.subarray(PART, PART + MIB))
  const file = join(lab.folder, '.cache/captures', id)
  await until(async () => (await stat(file)).size >= PART + MIB)
  const filler = join(lab.folder, 'filler.bin')
  await writeFile(filler, Buffer.alloc(200 * MIB)).catch(() => {})
  sending.end(FILE.subarray(PART + MIB))
  assert.is(await answered, 507)
  const offset = Number(await machine.offset(id))
  assert.ok(offset >= PART && offset <= (await stat(file)).size, String(offset))
  await writeFile(filler, '')
  assert.is((await machine.send(id, offset, FILE.subarray(offset))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
})

test('where not even one part fits, nothing is begun', async () => {
  const { lab, machine } = await openFull(2 * 64 + 20)
  await using _ = lab
  const filler = join(lab.folder, 'filler.bin')
  await writeFile(filler, Buffer.alloc(24 * MIB))
  assert.is((await machine.begin(NAME)).status, 507)
  assert.equal([lab.cache.captures.list(), await readdir(capturesOf(lab.folder))], [[], []])
  await writeFile(filler, '')
  assert.is((await machine.begin(NAME)).status, 201)
})

const capturesOf = (folder: string) => join(folder, '.cache/captures')

/** Leaves the file system so many blocks, and not one more. */
async function fill(folder: string, blocks: number): Promise<void> {
  const { bsize, bavail } = await statfs(folder)
  await writeFile(join(folder, '.filler'), Buffer.alloc((bavail - blocks) * bsize))
  assert.is((await statfs(folder)).bavail, blocks)
}

test('a capture is rejected on a disk that is completely full, and its order is used up', async () => {
  const { lab, machine } = await openFull(160)
  await using _ = lab
  const id = await uploadCapture(machine, NAME, await makeCapture(100_000))
  await fill(lab.folder, 0)
  assert.is((await lab.operator.ask('DELETE', `/captures/${id}`)).status, 204)
  assert.equal([lab.cache.captures.list(), await readdir(capturesOf(lab.folder))], [[], []])
  await rm(join(lab.folder, '.filler'))
  assert.is((await machine.begin(NAME)).status, 401)
  const records = await readdir(join(lab.folder, '.cache/records'))
  assert.ok(records.includes('order+order-0001.json'), 'also after a restart')
})

test('a capture is accepted as a whole on a disk that is full from then on', async () => {
  const { lab, machine } = await openFull(160)
  await using _ = lab
  const { file, end } = await makeCapture(100_000)
  const id = await uploadCapture(machine, NAME, { file, end })
  // One block is left, for the digest of the image; nothing is left for the record of the order.
  await fill(lab.folder, 1)
  assert.is((await lab.operator.post(`/captures/${id}/accept`, {})).status, 201)
  assert.equal(lab.cache.captures.list(), [])
  assert.equal(
    lab.cache.rows().map(({ entry }) => entry.sha256),
    [end.sha256],
  )
  assert.is((await machine.begin(NAME)).status, 401)
})

if (process.getuid?.() === 0) test.run()
