/** What a cache was decoding when it ended goes on at the next start. */
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { keyOf } from '#engine/catalog/rules/cache-entry.ts'
import {
  captureClient,
  makeSigner,
  SOURCE,
  type CapturedImage,
} from '#test/support/capture/uploads.ts'
import { makeBytes } from '#test/support/collect.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { makeFolder, openCache, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('cache: decoding goes on after a restart')
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
