/** Where machines may read images besides caches: what is looked at, and what is said where it cannot be. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createOrigins } from '#engine/catalog/origins.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { decideAgainMs } from '#engine/catalog/origins.rules.ts'
import { findOpenBlob } from '#kit/net/registry/registry.ts'
import { parseLocation } from '#kit/net/rules/image-location.ts'
import { accessOf } from '#kit/net/s3/rules/s3-access.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer, type Answer } from '#test/support/http/hostile-server.ts'
import { CREDENTIALS, digestOf, pushImage, startRegistry } from '#test/support/http/registry.ts'
import { startBucket } from '#test/support/http/s3-bucket.ts'
import { until } from '#test/support/server/image-cache.ts'
import { entryOf } from '#test/support/terminal/remote-fixture.ts'

const test = suite('origins')
const BYTES = makeBytes(700_001)
const DIGEST = digestOf(BYTES)
const KNOWN = { sha256: DIGEST.slice('sha256:'.length), sizeBytes: BYTES.length }

interface Started {
  readonly env?: Readonly<Record<string, string>>
  readonly lifetime?: () => number
  readonly isEnabled?: () => boolean
}

/** Looks at one image until something is found or said. */
function start(images: readonly CatalogEntry[], options: Started = {}) {
  const { env = {}, lifetime = () => 3600, isEnabled = () => true } = options
  const said: string[] = []
  const note = (line: string) => void said.push(line)
  const origins = createOrigins({
    images: () => images,
    isEnabled,
    s3: async () => accessOf(env),
    lifetime,
    env,
    now: () => new Date(),
    log: { info: note, warn: note },
    tickMs: 20,
    retryMs: 1,
  })
  const [image] = images
  const find = () => (image === undefined ? null : origins.find(image))
  const settled = () => until(async () => find() !== null || said.length > 0)
  return {
    ...origins,
    find,
    said,
    settled,
    [Symbol.asyncDispose]: () => origins[Symbol.asyncDispose](),
  }
}

async function look(image: CatalogEntry, options: Started = {}) {
  await using origins = start([image], options)
  await origins.settled()
  return { url: origins.find(), said: origins.said.join('\n') }
}

test('a registry that asks for nothing is named by the address of the bytes', async () => {
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img.zst' }])
  const image = entryOf(`oras://${registry.host}/lab/disk:v1`, KNOWN)
  const found = await look(image)
  assert.equal(found, { url: `http://${registry.host}/v2/lab/disk/blobs/${DIGEST}`, said: '' })
  const answer = await fetch(found.url ?? '', { headers: { range: 'bytes=5-9' } })
  assert.ok(BYTES.subarray(5, 10).equals(Buffer.from(await answer.arrayBuffer())))
  // What the tag names now does not matter, as long as the bytes are there.
  await pushImage(registry, 'lab/disk:v1', [{ bytes: makeBytes(5), title: 'disk.img.zst' }])
  assert.is((await look(image)).url, found.url)
})

test('a registry that wants a login is not named, though the server has one', async () => {
  await using registry = await startRegistry({ locked: true })
  const image = entryOf(`oras://${registry.host}/lab/disk:v1`, KNOWN)
  const found = await look(image, {
    env: {
      FLASHER_REGISTRY_HOST: registry.host,
      FLASHER_REGISTRY_USER: CREDENTIALS.user,
      FLASHER_REGISTRY_PASSWORD: CREDENTIALS.password,
    },
  })
  assert.is(found.url, null)
  assert.match(found.said, /do not read disk:v1 from its origin: it requires a login/)
})

/** One that gives tokens to everybody, as public registries do. */
function serveTokens(manifest: string): Answer {
  return (request, response) => {
    const host = request.headers.host ?? ''
    if (request.url?.startsWith('/token') === true) response.end('{"token":"for-everybody"}')
    else if (request.headers.authorization !== 'Bearer for-everybody') {
      const challenge = `Bearer realm="http://${host}/token",service="x"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
    } else if (request.url?.includes('/manifests/v1') === true) response.end(manifest)
    else if (request.url?.includes('/manifests/') === true) response.writeHead(404).end()
    else sendFile(BYTES, request, response)
  }
}

test('one that gives tokens to everybody is named by the digest of the manifest', async () => {
  const title = { 'org.opencontainers.image.title': 'disk.img.zst' }
  const layer = { digest: DIGEST, size: BYTES.length, annotations: title }
  const manifest = JSON.stringify({ layers: [layer] })
  await using registry = await startHostileServer(serveTokens(manifest))
  const at = `oras://${registry.origin.slice('http://'.length)}/lab/disk`
  const found = await look(entryOf(`${at}:v1`, KNOWN))
  assert.equal(found, { url: `${at}@${digestOf(manifest)}`, said: '' })
  await using moved = await startHostileServer(serveTokens('{"layers":[]}'))
  const other = `oras://${moved.origin.slice('http://'.length)}/lab/disk:v1`
  const lost = await look(entryOf(other, KNOWN))
  assert.is(lost.url, null)
  assert.match(lost.said, /the tag now points to another image/)
})

test('a manifest that was found is not asked for again, as registries count that', async () => {
  const layer = { digest: DIGEST, size: BYTES.length }
  await using registry = await startHostileServer(serveTokens(JSON.stringify({ layers: [layer] })))
  const location = parseLocation(`oras://${registry.origin.slice('http://'.length)}/lab/disk:v1`)
  if (!location.ok || location.value.kind !== 'oras') throw new Error('no reference')
  const { ref } = location.value
  const asking = { env: {}, signal: new AbortController().signal, stallMs: 5000, retryMs: 1 }
  const find = (known: string | null) => findOpenBlob(asking, ref, { ...KNOWN, arch: null, known })
  const countManifests = () => registry.seen.filter(({ url }) => url.includes('/manifests/')).length
  const first = await find(null)
  const asked = countManifests()
  assert.ok(first.ok && asked > 0)
  assert.equal(await find(first.value), first)
  assert.is(countManifests(), asked)
  // What was the address of the bytes no longer is, where the registry gives out tokens by now.
  assert.equal(await find(`${registry.origin}/v2/lab/disk/blobs/${DIGEST}`), first)
})

test('who has answered is left alone for longer than who could not be reached', () => {
  assert.is(decideAgainMs('oras', 'open', 8), 600_000)
  assert.is(decideAgainMs('oras', 'refused', 8), 600_000)
  assert.is(decideAgainMs('oras', 'unknown', 8), 60_000)
  assert.is(decideAgainMs('s3', 'open', 8), 2000)
})

test('what a registry answers instead is a sentence', async () => {
  for (const [answer, words] of [
    [(_, response) => response.writeHead(429, { 'retry-after': '0' }).end(), /limits requests/],
    [(_, response) => response.writeHead(404).end(), /does not have this data/],
    [(_, response) => response.writeHead(405).end(), /answers HTTP 405/],
    [
      (request, response) => sendFile(BYTES, request, response, { ranges: false }),
      /no byte ranges/,
    ],
    [
      (request, response) => sendFile(makeBytes(9), request, response),
      /it has 9 bytes there, not 700001/,
    ],
    [(request) => request.socket.destroy(), /from its origin: .+/],
  ] as const satisfies readonly (readonly [Answer, RegExp])[]) {
    await using registry = await startHostileServer(answer)
    const src = `oras://${registry.origin.slice('http://'.length)}/lab/disk:v1`
    const { url, said } = await look(entryOf(src, KNOWN))
    assert.is(url, null)
    assert.match(said, words)
  }
})

test('a bucket is named by a signed address, which is renewed, and never said', async () => {
  await using bucket = await startBucket()
  bucket.objects.set('disk.img', BYTES)
  const image = entryOf('s3://lab/disk.img', KNOWN)
  await using origins = start([image], { env: bucket.env, lifetime: () => 8 })
  await origins.settled()
  const first = origins.find() ?? ''
  assert.match(first, /X-Amz-Expires=8&.*X-Amz-Signature=/)
  const answer = await fetch(first, { headers: { range: 'bytes=5-9' } })
  assert.ok(BYTES.subarray(5, 10).equals(Buffer.from(await answer.arrayBuffer())))
  assert.is((await fetch(first, { method: 'HEAD' })).status, 403)
  // A quarter of its time is two seconds.
  await until(async () => origins.find() !== first)
  assert.match(origins.find() ?? '', /X-Amz-Signature=/)
  assert.equal(origins.said, [])
})

test('a bucket that refuses, or has another size, is not named', async () => {
  await using bucket = await startBucket()
  bucket.objects.set('disk.img', makeBytes(9))
  const image = entryOf('s3://lab/disk.img', KNOWN)
  const wrong = { ...bucket.env, AWS_SECRET_ACCESS_KEY: 'wrong' }
  const rows = [
    [image, bucket.env, /it has 9 bytes there, not 700001/],
    [image, wrong, /the secret key does not belong to the access key/],
    [entryOf('s3://lab/other.img', KNOWN), bucket.env, /no such object/],
  ] as const
  for (const [entry, env, words] of rows) {
    const { url, said } = await look(entry, { env })
    assert.is(url, null)
    assert.match(said, words)
    assert.not.match(said, /X-Amz|lab-key/)
  }
})

test('nothing is asked where it is off, nor for what has no digest or another origin', async () => {
  await using bucket = await startBucket()
  const images = [
    entryOf('s3://lab/disk.img'),
    entryOf('https://h/disk.img', KNOWN),
    entryOf('file://disk.img', KNOWN),
  ]
  await using off = start([entryOf('s3://lab/disk.img', KNOWN)], {
    env: bucket.env,
    isEnabled: () => false,
  })
  await using on = start(images, { env: bucket.env })
  bucket.objects.set('last.img', BYTES)
  const last = entryOf('s3://lab/last.img', KNOWN)
  await using seen = start([last], { env: bucket.env })
  await seen.settled()
  assert.equal([off.find(), on.find(), off.said, on.said], [null, null, [], []])
  assert.ok(bucket.seen.every(({ url }) => url.startsWith('/lab/last.img')))
})

test.run()
