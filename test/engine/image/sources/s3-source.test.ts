import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { createShell } from '#kit/host/shell.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { startBucket } from '#test/support/http/s3-bucket.ts'

const test = suite('s3 source')
const BYTES = makeBytes(700_001)
const HOUR = 3_600_000

const open = (key: string, env: Readonly<Record<string, string>>, bucket = 'lab') =>
  createSources({ env, retryMs: 1, stallMs: 5000 }).open(`s3://${bucket}/${key}`)

/** Names that a path, a query or a signature could be misled by. */
const NAMES = [
  'disk.img.zst',
  'deep/er/disk image+1.img',
  "quo'te(s)*!~.img",
  'per%20cent%2Fs.img',
  'what?is=this&that#there.img',
  'ümläut/日本語/🦄.img',
  '//double//slash.img',
  'at@colon:;=,$.img',
  '<&">.img',
]

test('objects of any name are read whole and by parts, with GET alone', async () => {
  await using bucket = await startBucket()
  for (const name of NAMES) {
    bucket.objects.set(name, BYTES)
    await using source = await open(name, bucket.env)
    assert.is(source.name, `s3://lab/${name}`)
    assert.is(source.sizeBytes, BYTES.length)
    assert.ok(BYTES.equals(await collect(source.stream())), name)
    assert.ok(BYTES.subarray(500_000).equals(await collect(source.stream(500_000))))
    const into = Buffer.alloc(1000)
    assert.is(await source.readAt?.(into, 300_000), 1000)
    assert.ok(into.equals(BYTES.subarray(300_000, 301_000)))
  }
  assert.equal([...new Set(bucket.seen.map(({ method }) => method))], ['GET'])
  assert.ok(bucket.seen.every(({ headers }) => headers.authorization === undefined))
})

test('curl signs the same, so that the bucket of these tests is judged by another program', async () => {
  await using bucket = await startBucket()
  const shell = createShell({ env: process.env })
  const ask = (key: string, secret: string) =>
    shell.run([
      'curl', '-s', '--aws-sigv4', 'aws:amz:us-east-1:s3', '--user', `lab-key:${secret}`,
      '-H', 'x-amz-content-sha256: UNSIGNED-PAYLOAD', `${bucket.origin}/lab/${key}`,
    ]) // prettier-ignore
  bucket.objects.set('plain.img', Buffer.from('the bytes'))
  assert.is((await ask('plain.img', bucket.secret)).stdout, 'the bytes')
  assert.match((await ask('plain.img', 'wrong')).stdout, /SignatureDoesNotMatch/)
  assert.match((await ask('other.img', bucket.secret)).stdout, /NoSuchKey/)
})

test('what speaks against it is a sentence', async () => {
  await using bucket = await startBucket()
  bucket.objects.set('disk.img', BYTES)
  const { env } = bucket
  const rows = [
    ['disk.img', { ...env, AWS_SECRET_ACCESS_KEY: 'wrong' }, 'lab', /the secret key does not belong to the access key/, /AWS_SECRET_ACCESS_KEY/],
    ['disk.img', { ...env, AWS_ACCESS_KEY_ID: 'other' }, 'lab', /the access key is unknown/, /access_key/],
    ['disk.img', { AWS_ENDPOINT_URL: bucket.origin }, 'lab', /access denied/, /The bucket is not public/],
    ['other.img', env, 'lab', /the bucket has no such object/, /case-sensitive/],
    ['disk.img', env, 'lab2', /there is no such bucket/, /endpoint/],
  ] as const // prettier-ignore
  for (const [key, given, name, reason, hint] of rows) {
    const fault = await faultOf(() => open(key, given, name))
    assert.is(fault.code, 'input-missing')
    assert.match(fault.message, reason)
    assert.match(fault.hint ?? '', hint)
    assert.not.match(`${fault.message}${fault.hint}`, /X-Amz|Signature=|wrong/)
  }
})

test('a variable that is no address of a service is named, and nothing of it is shown', async () => {
  const keys = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' }
  for (const endpoint of [
    'lab',
    'ftp://h',
    'http://me:word@h',
    'http://h/?word',
    'http://h:99999',
  ]) {
    const fault = await faultOf(() => open('disk.img', { ...keys, AWS_ENDPOINT_URL: endpoint }))
    assert.is(fault.code, 'input-invalid')
    assert.match(fault.message, /the address of the S3 service/)
    assert.match(fault.hint ?? '', /AWS_ENDPOINT_URL/)
    assert.not.match(`${fault.message}${fault.hint}`, 'word')
  }
})

test('a clock that is wrong is named, with how far it is off', async () => {
  let ahead = 0
  await using bucket = await startBucket({ now: () => Date.now() + ahead })
  bucket.objects.set('disk.img', BYTES)
  for (const [by, words] of [
    [2 * HOUR, /the clock of this host is 120 minutes behind the service's/],
    [-2 * HOUR, /the clock of this host is 120 minutes ahead of the service's/],
  ] as const) {
    ahead = by
    const fault = await faultOf(() => open('disk.img', bucket.env))
    assert.match(fault.message, words)
    assert.match(fault.hint ?? '', /Set the clock/)
  }
})

test('a bucket in another region is found by what the service says, however it says it', async () => {
  for (const redirects of [true, false]) {
    await using bucket = await startBucket({ region: 'eu-central-7', redirects })
    bucket.objects.set('disk.img', BYTES)
    await using source = await open('disk.img', { ...bucket.env, AWS_REGION: 'us-east-1' })
    assert.ok(BYTES.equals(await collect(source.stream())))
    // Once told, it is not asked in the wrong one again.
    const wrong = bucket.seen.filter(({ url }) => url.includes('us-east-1'))
    assert.is(wrong.length, 1)
  }
})

test('a redirect to another host is followed without keys and without the signature', async () => {
  await using elsewhere = await startHostileServer((request, response) =>
    sendFile(BYTES, request, response),
  )
  await using bucket = await startBucket({
    before(_request, response) {
      response.writeHead(307, { location: `${elsewhere.origin}/there?ticket=1` }).end()
      return true
    },
  })
  await using source = await open('disk.img', bucket.env)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(elsewhere.seen.length > 0)
  for (const { url, headers } of elsewhere.seen) {
    assert.is(url, '/there?ticket=1')
    assert.is(headers.authorization, undefined)
  }
})

test('a service that sends no parts is read from start to end', async () => {
  await using bucket = await startBucket({ behaviour: () => ({ ranges: false }) })
  bucket.objects.set('disk.img', BYTES)
  await using source = await open('disk.img', bucket.env)
  assert.is(source.readAt, null)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('a cut connection goes on where it was, with a signature of its own', async () => {
  let cuts = 0
  await using bucket = await startBucket({
    behaviour: () => (cuts++ < 4 ? { cutAfter: 100_000 } : {}),
  })
  bucket.objects.set('disk.img', BYTES)
  await using source = await open('disk.img', bucket.env)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(bucket.seen.some(({ headers }) => /^bytes=\d{6}-/.test(headers.range ?? '')))
})

test('a public bucket is read without keys', async () => {
  await using server = await startHostileServer((request, response) => {
    if (request.url === '/open/disk.img') sendFile(BYTES, request, response)
    else response.writeHead(404).end()
  })
  await using source = await open('disk.img', { AWS_ENDPOINT_URL: server.origin }, 'open')
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test.run()
