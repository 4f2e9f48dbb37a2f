/** Registries that refuse, limit, forget or lie, in front of Debian's: what is in the cache stays, the reason is a sentence, and it mends itself. */
import { createHash } from 'node:crypto'
import * as http from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseListing, renderListed } from '#cache/rules/catalog.ts'
import type { ImageCache } from '#cache/store/image-cache.ts'
import { blobUrl, ageOf, hasMovedOn } from '#engine/catalog/rules/cache-entry.ts'
import { makeBytes } from '#test/support/collect.ts'
import {
  type FileBehaviour,
  sendFile,
  startHostileServer,
} from '#test/support/http/hostile-server.ts'
import { pushImage, startRegistry } from '#test/support/http/registry.ts'
import { login } from '#test/support/server/flasher-web.ts'
import {
  bring,
  makeFolder,
  openCache,
  PASSWORD,
  serveCache,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('cache: faults of registries')
const BEFORE = makeBytes(900_000)
const AFTER = makeBytes(1_200_000, 2)
const hex = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

/** What a registry does wrong. */
interface RegistryFault {
  readonly name: string
  /** The words that an operator reads. */
  readonly words: RegExp
  /** Answers, or says that Debian's registry does. */
  answer(path: string, response: http.ServerResponse, count: number): boolean
  /** Changes what Debian's registry sends of a blob. */
  readonly spoils?: true
}

const isBlob = (path: string) => path.includes('/blobs/')
const status =
  (
    code: number,
    headers: Readonly<Record<string, string>> = {},
    isAt: (path: string) => boolean = () => true,
  ) =>
  (path: string, response: http.ServerResponse): boolean => {
    if (isAt(path)) response.writeHead(code, headers).end('{"errors":[]}')
    return isAt(path)
  }

const FAULTS: readonly RegistryFault[] = [
  { name: 'refuses', words: /HTTP 403\) Set FLASHER_REGISTRY_HOST/, answer: status(403) },
  {
    name: 'limits the rate and does not stop to',
    words: /HTTP 429\) The registry limits requests/,
    answer: status(429, { 'retry-after': '0' }),
  },
  {
    name: 'asks for a login that nobody has',
    words: /HTTP 401\) Set FLASHER_REGISTRY_HOST/,
    answer: status(401, { 'www-authenticate': 'Basic realm="lab"' }),
  },
  {
    name: 'has lost the manifest',
    words: /HTTP 404\) The registry has no such image/,
    answer: status(404),
  },
  {
    name: 'has collected the blob',
    words: /its data sha256:[0-9a-f]{64} is not: HTTP 404\) The garbage collection/,
    answer: status(404, {}, isBlob),
  },
  {
    name: 'lies about the digest',
    words: /holds [0-9a-f]{64}, but [0-9a-f]{64} was expected/,
    answer: () => false,
    spoils: true,
  },
]

/** A way to the registry that does one thing wrong as long as a test says so. */
async function openDoor(host: string) {
  const state: { fault: RegistryFault | null; count: number } = { fault: null, count: 0 }
  const server = await startHostileServer((request, response) => {
    const { method, headers, url = '' } = request
    state.count += 1
    if (state.fault?.answer(url, response, state.count) === true) return
    const on = http.request(`http://${host}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      let isFirst = state.fault?.spoils === true && isBlob(url)
      answer.on('data', (chunk: Buffer) => {
        if (isFirst) chunk[0] = (chunk[0] ?? 0) ^ 1
        isFirst = false
        response.write(chunk)
      })
      answer.on('end', () => response.end())
    })
    request.pipe(on)
  })
  return { state, host: server.origin.slice('http://'.length), server }
}

for (const fault of FAULTS) {
  test(`a registry that ${fault.name}: a sentence, nothing lost, and it goes on when that ends`, async () => {
    await using folder = await makeFolder()
    await using registry = await startRegistry()
    const door = await openDoor(registry.host)
    await using _server = door.server
    await using served = await serveCache(folder.path)
    await pushImage(registry, 'lab/disk:v1', [{ bytes: BEFORE, title: 'disk.img' }])
    const src = `oras://${door.host}/lab/disk:v1`
    const name = await bring(served.cache, { src })
    await pushImage(registry, 'lab/disk:v1', [{ bytes: AFTER, title: 'disk.img' }])
    const fetchAgain = async () => {
      await (
        await served.cache.download(name, { force: true })
      )?.ended
      return served.cache.failureOf(name)
    }
    const readDigest = async () => {
      const answer = await fetch(blobUrl(served.base, src))
      return hex(Buffer.from(await answer.arrayBuffer()))
    }
    door.state.fault = fault
    const failure = await fetchAgain()
    assert.match(`${failure?.message} ${failure?.hint}`, fault.words)
    assert.is(await readDigest(), hex(BEFORE), 'what is here stays offered')
    door.state.fault = null
    assert.is(await fetchAgain(), null)
    assert.is(await readDigest(), hex(AFTER))
  })
}

test('a rate limit that ends is waited for, as long as the registry says', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  const door = await openDoor(registry.host)
  await using _server = door.server
  await using served = await serveCache(folder.path)
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BEFORE, title: 'disk.img' }])
  const limit = status(429, { 'retry-after': '1' })
  door.state.fault = {
    name: 'limits',
    words: /429/,
    answer: (path, response, count) => count <= 2 && limit(path, response),
  }
  const since = performance.now()
  const name = await bring(served.cache, { src: `oras://${door.host}/lab/disk:v1` })
  assert.is(served.cache.failureOf(name), null)
  assert.ok(performance.now() - since >= 1900)
})

const BYTES = makeBytes(300_000)
const NEWER = makeBytes(300_000, 2)
const OFTEN = { upstreamSeconds: 0.02 }

/** A file that a test replaces, or whose server it breaks. */
async function startRolling(behaviour: FileBehaviour = {}) {
  const state = { bytes: BYTES, behaviour, status: 200, type: '' }
  const server = await startHostileServer((request, response) => {
    if (state.status !== 200) response.writeHead(state.status).end()
    else if (state.type !== '') response.writeHead(200, { 'content-type': state.type }).end('<p>')
    else sendFile(state.bytes, request, response, state.behaviour)
  })
  return { state, server }
}

function rowOf(cache: ImageCache) {
  const [row] = cache.rows()
  if (row === undefined) throw new Error('nothing is listed')
  return row
}

/** The catalog, its long form, the command and the page. */
async function checkSaid(base: string, seen: string | null) {
  const listing: unknown = await (await fetch(`${base}/catalog?all`)).json()
  const [state] = parseListing(listing).map((image) => renderListed(image, false).state)
  assert.is(state, `ready, newer version at the source (seen ${seen})`)
  const offered: unknown = await (await fetch(`${base}/catalog`)).json()
  assert.is(Object(offered).entries[0].upstream_moved_at, seen)
  assert.is(Object(offered).entries[0].upstream_looked_at, undefined)
  const { cookie } = await login(base, PASSWORD)
  const page = await fetch(`${base}/ui/dashboard`, { headers: { cookie } })
  assert.match(await page.text(), /newer at its source/)
}

test('it says that the source moved on, and replaces nothing until somebody asks', async () => {
  for (const kind of [{}, { head: 405 }, { head: 'hang-up' }] as const) {
    await using folder = await makeFolder()
    const { state, server } = await startRolling(kind)
    await using _ = server
    await using served = await serveCache(folder.path, OFTEN)
    const row = () => rowOf(served.cache)
    const name = await bring(served.cache, { src: `${server.origin}/x.img` })
    await until(() => row().lookedAt !== null)
    assert.is(row().movedAt, null)
    const digest = row().entry.sha256
    Object.assign(state, { bytes: NEWER, behaviour: { ...kind, etag: '"two"' } })
    await until(() => row().movedAt !== null)
    const seen = row().movedAt
    const looked = row().lookedAt
    await until(() => row().lookedAt !== looked)
    assert.equal([row().state, row().entry.sha256, row().movedAt], ['ready', digest, seen])
    await checkSaid(served.base, seen)
    await (
      await served.cache.download(name, { force: true })
    )?.ended
    assert.is(row().movedAt, null)
    assert.is.not(row().entry.sha256, digest)
  }
})

test('an error, a page or nothing changes nothing but the time of the look', async () => {
  await using folder = await makeFolder()
  const { state, server } = await startRolling()
  await using _ = server
  await using cache = await openCache(folder.path, OFTEN)
  const row = () => cache.rows()[0]
  await bring(cache, { src: `${server.origin}/x.img` })
  for (const trouble of [{ status: 503 }, { status: 404 }, { status: 200, type: 'text/html' }]) {
    Object.assign(state, trouble)
    const looks = server.seen.length
    await until(() => server.seen.length > looks + 6)
    const looked = row()?.lookedAt
    await until(() => row()?.lookedAt !== looked)
    assert.equal([row()?.state, row()?.movedAt, row()?.error], ['ready', null, null])
  }
})

test('a tag of a registry that names another image moved on; so it is after a restart', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  {
    await using cache = await openCache(folder.path, OFTEN)
    await bring(cache, { src: `oras://${registry.host}/lab/disk:v1` })
    await until(() => (cache.rows()[0]?.lookedAt ?? null) !== null)
    assert.is(cache.rows()[0]?.movedAt, null)
    await pushImage(registry, 'lab/disk:v1', [{ bytes: NEWER, title: 'disk.img' }])
    await until(() => (cache.rows()[0]?.movedAt ?? null) !== null)
  }
  await using again = await openCache(folder.path)
  assert.type(again.rows()[0]?.movedAt, 'string')
})

test('nobody is asked unless it is set', async () => {
  await using folder = await makeFolder()
  const { server } = await startRolling()
  await using _ = server
  await using cache = await openCache(folder.path)
  await bring(cache, { src: `${server.origin}/x.img` })
  const asked = server.seen.length
  await new Promise((resolve) => setTimeout(resolve, 100))
  assert.is(server.seen.length, asked)
  assert.is(cache.rows()[0]?.lookedAt, null)
})

test('what decides', () => {
  const kept = { sha256: 'a', sizeBytes: 5, version: '"1"' }
  const found = { sizeBytes: null, version: null }
  assert.not.ok(hasMovedOn(kept, found))
  assert.not.ok(hasMovedOn(kept, { ...found, version: 'Thu, 01 Jan 2026 00:00:00 GMT' }))
  assert.not.ok(hasMovedOn(kept, { ...found, version: '"2"', sha256: 'a' }))
  assert.ok(hasMovedOn(kept, { ...found, version: '"2"' }))
  assert.ok(hasMovedOn({ ...kept, version: null }, { ...found, sizeBytes: 6 }))
  assert.ok(hasMovedOn(kept, { ...found, version: '"1"', servedSha256: 'b' }))
  assert.is(ageOf(Date.parse('2030-01-01'), Date.parse('2026-01-01')), 0)
})

test.run()
