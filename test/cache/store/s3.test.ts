import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { makeBytes } from '#test/support/collect.ts'
import { startBucket } from '#test/support/http/s3-bucket.ts'
import { bring, makeFolder, serveCache } from '#test/support/server/image-cache.ts'

const test = suite('cache: s3')
const BYTES = makeBytes(1_500_000)

test('an object is downloaded, listed under its own address, and no signature is anywhere', async () => {
  const lines: string[] = []
  const note = (line: string) => void lines.push(line)
  const log = { debug: note, info: note, warn: note, error: note }
  await using folder = await makeFolder()
  await using bucket = await startBucket()
  await using served = await serveCache(folder.path, { env: bucket.env, log })
  bucket.objects.set('lab/disk #1 +ü.img', BYTES)
  const src = 's3://lab/lab/disk #1 +ü.img'
  await bring(served.cache, { src, any_content: true })
  await bring(served.cache, { src: 's3://lab/other.img' })
  const [row, other] = served.cache.rows()
  const digest = createHash('sha256').update(BYTES).digest('hex')
  assert.equal([row?.state, row?.error, row?.entry.sha256], ['ready', null, digest])
  assert.match(other?.error ?? '', /the bucket has no such object/)
  const catalog = await (await fetch(`${served.base}/catalog`)).text()
  const [listed] = JSON.parse(catalog).entries
  assert.equal([listed.src, refOf(listed.src).ok], [src, true])
  assert.not.match(`${catalog}${lines.join('\n')}`, /X-Amz|Signature|lab-key/)
})

test.run()
