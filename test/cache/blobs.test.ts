import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import * as http from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, serveCache, until } from '#test/support/server/image-cache.ts'

const test = suite('cache: blobs over HTTP')
const BYTES = makeBytes(700_001)
const SHA256 = createHash('sha256').update(BYTES).digest('hex')
const origin = () => startHostileServer((request, response) => sendFile(BYTES, request, response))

test('serves a downloaded image by the token of its source, with all that clients look at', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/a/Debian%2013.img.gz?x=1`
  await bring(served.cache, { src })
  const url = blobUrl(served.base, src)
  const whole = await fetch(url)
  assert.is(whole.status, 200)
  assert.is(whole.headers.get('content-length'), '700001')
  assert.is(whole.headers.get('etag'), `"${SHA256}"`)
  assert.is(whole.headers.get('x-withcache-sha256'), SHA256)
  assert.is(whole.headers.get('accept-ranges'), 'bytes')
  assert.is(whole.headers.get('content-encoding'), null)
  assert.ok(Buffer.from(await whole.arrayBuffer()).equals(BYTES))
  const head = await fetch(url, { method: 'HEAD' })
  assert.is(head.status, 200)
  assert.is(head.headers.get('content-length'), '700001')
  assert.is(head.headers.get('etag'), `"${SHA256}"`)
})

test('where a version is asked for, another one is none', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await bring(served.cache, { src })
  const url = blobUrl(served.base, src)
  const statusOf = async (query: string) => {
    const answer = await fetch(`${url}?${query}`)
    await answer.arrayBuffer()
    return answer.status
  }
  assert.is(await statusOf(`sha256=${SHA256}`), 200)
  assert.is(await statusOf(`sha256=${'0'.repeat(64)}`), 404)
  assert.is(await statusOf('other=1'), 200)
})

test('serves every part that can be asked for', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await bring(served.cache, { src })
  const url = blobUrl(served.base, src)
  const rows = [
    ['bytes=0-0', 206, 0, 1],
    ['bytes=5-', 206, 5, 700_001],
    ['bytes=-7', 206, 699_994, 700_001],
    ['bytes=699990-999999999', 206, 699_990, 700_001],
    ['bytes=262143-262145', 206, 262_143, 262_146],
    ['bytes=0-1,5-6', 200, 0, 700_001],
    ['elephants=1-2', 200, 0, 700_001],
  ] as const
  for (const [range, status, from, to] of rows) {
    const answer = await fetch(url, { headers: { range } })
    assert.is(answer.status, status, range)
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(BYTES.subarray(from, to)), range)
    if (status === 206) {
      assert.is(answer.headers.get('content-range'), `bytes ${from}-${to - 1}/700001`)
    }
  }
  const beyond = await fetch(url, { headers: { range: 'bytes=700001-' } })
  assert.is(beyond.status, 416)
  assert.is(beyond.headers.get('content-range'), 'bytes */700001')
  const same = await fetch(url, { headers: { 'if-none-match': `"${SHA256}"` } })
  assert.is(same.status, 304)
  const range = 'bytes=1-2'
  const other = await fetch(url, { headers: { range, 'if-range': '"other"' } })
  assert.is(other.status, 200)
  const mine = await fetch(url, { headers: { range, 'if-range': `"${SHA256}"` } })
  assert.is(mine.status, 206)
  for (const answer of [other, mine]) await answer.body?.cancel()
})

test('finds an entry by its source and by where that was resolved to', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = 'https://images.invalid/stable.img'
  const resolved = `${source.origin}/2026/stable.img`
  await bring(served.cache, { name: 'stable', src, resolved_src: resolved })
  for (const spelled of [src, resolved, src.replace('https', 'HTTPS')]) {
    const answer = await fetch(blobUrl(served.base, spelled))
    assert.is(answer.status, 200, spelled)
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(BYTES))
  }
})

test('a miss is 404, and starts the download of an entry that is known', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  const url = blobUrl(served.base, src)
  assert.is((await fetch(url)).status, 404)
  assert.is(source.seen.length, 0)
  await served.cache.add({ src })
  const miss = await fetch(url)
  assert.is(miss.status, 404)
  assert.is(miss.headers.get('retry-after'), '10')
  await until(() => served.cache.rows()[0]?.state === 'ready')
  assert.is((await fetch(url, { method: 'HEAD' })).status, 200)
})

test('tokens that are none, and names that want out of the folder, are refused', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  await writeFile(join(folder.path, '.secret.img'), 'x')
  const rows: readonly (readonly [string, readonly number[]])[] = [
    ['/b/%2e%2e%2f', [400, 404]],
    ['/b/!!!!', [400]],
    ['/b/YQ', [404]],
    [`/b/${'A'.repeat(20_000)}`, [400, 431]],
    [`/b/${Buffer.from([0xff, 0xfe]).toString('base64url')}/x`, [400]],
    [`/b/${Buffer.from('file:///../../etc/passwd').toString('base64url')}/x`, [404]],
    [`/b/${Buffer.from('file:///etc%2Fpasswd').toString('base64url')}/x`, [404]],
    ['/files/..%2f..%2fetc%2fpasswd', [400, 404]],
    ['/files/%2e%2e/%2e%2e/etc/passwd', [400, 404]],
    ['/files/.cache', [404]],
    ['/files/.secret.img', [404]],
    ['/files/.cache%2ftoken', [404]],
    ['/files/%00', [400, 404]],
    ['/files/%ff', [400, 404]],
    ['/blob', [400]],
    ['/blob?url=file%3A%2F%2F%2Fetc%2Fpasswd', [404]],
  ]
  for (const [path, statuses] of rows) {
    const status = await rawStatus(served.base, path)
    assert.ok(statuses.includes(status), `${path.slice(0, 60)}: ${status}`)
  }
})

/** As it is spelled: fetch would tidy the path up. */
function rawStatus(base: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    http
      .get(base, { path }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      .on('error', reject)
  })
}

test.run()
