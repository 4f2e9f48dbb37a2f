/** Images in frames whose index lies: the cache decodes each once, however it came, and offers none of them. */
import { createHash } from 'node:crypto'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { openCaptureLab } from '#test/support/capture/uploads.ts'
import { makeContent } from '#test/support/disk/disk-images.ts'
import {
  callZeros,
  changeFlags,
  changeImageDigest,
  packBuffer,
} from '#test/support/disk/packed-image.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { asOperator, makeFolder, serveCache, until } from '#test/support/server/image-cache.ts'
import { readFrameMap } from '#engine/image/frame-maps.ts'

const test = suite('cache: an index that lies')
const FRAME = 4 << 20
const IMAGE = Buffer.concat([makeContent(FRAME, 1), makeContent(FRAME, 2), makeContent(70_000, 3)])
const { file: GOOD } = await packBuffer(IMAGE)
const LIES: readonly (readonly [string, Buffer, RegExp])[] = [
  ['zeros', callZeros(GOOD, 1), /frame 1 does not hold what its index says/],
  ['image', changeImageDigest(GOOD), /does not hold the image that its index says/],
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

test.run()
