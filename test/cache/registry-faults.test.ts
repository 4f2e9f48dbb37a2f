/** Registries that refuse, limit, forget or lie, in front of Debian's: what is in the cache stays, the reason is a sentence, and it mends itself. */
import { createHash } from 'node:crypto'
import * as http from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { makeBytes } from '#test/support/collect.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { pushImage, startRegistry } from '#test/support/http/registry.ts'
import { bring, makeFolder, serveCache } from '#test/support/server/image-cache.ts'

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
    words: /HTTP 429\) The registry limits how often it is asked/,
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
    words: /its bytes sha256:[0-9a-f]{64} are gone: HTTP 404\) The registry has collected them/,
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

test.run()
