/** A cache that follows another one: the same bytes, kept once verified; the followed one away, killed, lying; folders half filled. */
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, stat, writeFile } from 'node:fs/promises'
import * as http from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '../../runtime/engine/catalog/rules/blob-address.ts'
import { makeNoise } from '../support/disk/disk-images.ts'
import { sendFile, startHostileServer, type Answer } from '../support/http/hostile-server.ts'
import { serveFollower } from '../support/http/follower.ts'
import { bring, makeFolder, serveCache, startCache, until } from '../support/server/image-cache.ts'

const test = suite('a cache that follows another one')
const MIB = 1 << 20
const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
/** More than what a reader waits for, and some MiB. */
const LARGE = makeNoise(20 * MIB + 17)
const SMALL = makeNoise(600_001, 2)
const listHeld = async (folder: string) =>
  (await readdir(join(folder, '.follow/blobs')).catch(() => [])).toSorted()
const read = async (url: string, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await fetch(url, { headers })
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) }
}
const why = async (url: string) => {
  const answer = await fetch(url)
  return [answer.status, JSON.stringify(await answer.json())] as const
}

/** A cache with an image that was downloaded, one that was copied in, and one behind it. */
async function openPair(
  options: { readonly maxBytes?: number; readonly elapsed?: () => number } = {},
) {
  await using undo = new AsyncDisposableStack()
  const folder = undo.use(await makeFolder())
  const source = undo.use(
    await startHostileServer((request, response) => sendFile(LARGE, request, response)),
  )
  const main = await serveCache(join(folder.path, 'main'))
  let isOpen = true
  const close = async () => {
    if (isOpen) await main[Symbol.asyncDispose]()
    isOpen = false
  }
  undo.defer(close)
  await writeFile(join(folder.path, 'main/small.img'), SMALL)
  const src = `${source.origin}/a.img`
  await bring(main.cache, { src })
  await until(() => main.cache.rows().some((row) => row.entry.name === 'small.img'))
  await until(async () => (await fetch(`${main.base}/files/small.img`)).ok)
  const near = join(folder.path, 'near')
  const follower = undo.use(await serveFollower(near, main.base, options))
  const held = undo.move()
  return { main, close, follower, near, src, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

test('bytes, ranges, versions and headers are those of the followed cache, and are kept', async () => {
  await using pair = await openPair()
  const url = blobUrl(pair.follower.base, pair.src)
  const all = await Promise.all([1, 2, 3].map(() => read(url)))
  for (const { answer, bytes } of all) {
    assert.is(answer.status, 200)
    assert.is(answer.headers.get('etag'), `"${digest(LARGE)}"`)
    assert.is(answer.headers.get('x-withcache-sha256'), digest(LARGE))
    assert.ok(bytes.equals(LARGE))
  }
  await until(async () => (await listHeld(pair.near)).length === 1)
  assert.equal(await listHeld(pair.near), [digest(LARGE)])
  for (const [range, from, to] of [
    ['bytes=0-0', 0, 1],
    [`bytes=-7`, LARGE.length - 7, LARGE.length],
    ['bytes=1000-9000000', 1000, 9_000_001],
  ] as const) {
    const part = await read(url, { range })
    assert.is(part.answer.status, 206)
    assert.ok(part.bytes.equals(LARGE.subarray(from, to)), range)
  }
  const head = await fetch(url, { method: 'HEAD' })
  assert.is(head.headers.get('content-length'), String(LARGE.length))
  assert.is((await fetch(`${url}?sha256=${digest(SMALL)}`)).status, 404)
  assert.ok((await read(`${url}?sha256=${digest(LARGE)}`)).bytes.equals(LARGE))
})

test('a file is served by its name and by its address at any host, whatever host is asked', async () => {
  await using pair = await openPair()
  const { base } = pair.follower
  const asked = http.get(`${base}/files/small.img`, { headers: { host: 'rack-7.example:80' } })
  const status = await new Promise<number | undefined>((resolve) =>
    asked.on('response', (response) => {
      response.resume()
      resolve(response.statusCode)
    }),
  )
  assert.is(status, 200)
  assert.ok((await read(`${base}/files/small.img`)).bytes.equals(SMALL))
  const elsewhere = blobUrl(base, 'http://cache.example:8081/files/small.img')
  assert.ok((await read(`${elsewhere}?sha256=${digest(SMALL)}`)).bytes.equals(SMALL))
  assert.ok((await read(blobUrl(base, 'file:///small.img'))).bytes.equals(SMALL))
  const list = await (await fetch(`${base}/catalog`)).text()
  assert.match(list, 'small.img')
})

test('what is unavailable here is said in a sentence', async () => {
  await using pair = await openPair()
  const { base } = pair.follower
  const [missing, words] = await why(`${base}/files/other.img`)
  assert.is(missing, 404)
  assert.match(words, `${pair.main.base}, which this cache follows, does not have the image`)
  assert.is((await why(`${base}/b/%21/x`))[0], 400)
  const changed = await fetch(`${base}/catalog/entries`, { method: 'POST', body: '{}' })
  assert.is(changed.status, 409)
  assert.match(await changed.text(), `this cache follows ${pair.main.base}`)
})

test('a person in a browser is led to the followed cache, by a page with its style', async () => {
  await using pair = await openPair()
  const { base } = pair.follower
  for (const path of ['/', '/ui/login', '/ui/dashboard', '/files/other.img']) {
    const answer = await fetch(`${base}${path}`, { headers: { accept: 'text/html' } })
    assert.is(answer.status, 404, path)
    const text = await answer.text()
    assert.match(text, `href="${pair.main.base}/ui/dashboard"`)
    const own = [...text.matchAll(/(?:href|src)="(\/[^"]*)"/g)].map(([, address = '']) => address)
    assert.ok(own.length > 0)
    for (const address of own) assert.is((await fetch(`${base}${address}`)).status, 200, address)
  }
})

test('while the followed cache is away, what is here is served, and the rest is a clear error', async () => {
  let seconds = 0
  await using pair = await openPair({ elapsed: () => performance.now() + seconds * 1000 })
  const { base } = pair.follower
  const url = blobUrl(base, pair.src)
  await read(url)
  await fetch(`${base}/catalog`)
  await until(async () => (await listHeld(pair.near)).length === 1)
  await pair.close()
  seconds = 5.1 // What the followed cache said last has expired.
  // The file is in its place a moment before the cache counts it as whole.
  await until(async () => (await fetch(url, { method: 'HEAD' })).ok)
  assert.ok((await read(url)).bytes.equals(LARGE))
  assert.match(await (await fetch(`${base}/catalog`)).text(), 'small.img')
  const [status, words] = await why(`${base}/files/small.img`)
  assert.is(status, 502)
  assert.match(words, `the followed cache ${pair.main.base} failed: connection refused`)
})

test('the images that were not used for longest make room, and a larger one passes through', async () => {
  await using pair = await openPair({ maxBytes: 15 * MIB })
  const { base } = pair.follower
  assert.ok((await read(`${base}/files/small.img`)).bytes.equals(SMALL))
  await until(async () => (await listHeld(pair.near)).length === 1)
  assert.ok((await read(blobUrl(base, pair.src))).bytes.equals(LARGE))
  assert.equal(await listHeld(pair.near), [digest(SMALL)])
  await using small = await openPair({ maxBytes: LARGE.length + 1000 })
  const near = small.follower.base
  await read(`${near}/files/small.img`)
  await until(async () => (await listHeld(small.near)).length === 1)
  assert.ok((await read(blobUrl(near, small.src))).bytes.equals(LARGE))
  await until(async () => (await listHeld(small.near)).join() === digest(LARGE))
})

/** Sends `first` bytes of the body of each whole answer, and holds the rest back. */
function holdBack(first: number, sent = LARGE) {
  const waiting: http.ServerResponse[] = []
  let isFree = false
  const answer: Answer = (request, response) => {
    response.setHeader('x-withcache-sha256', digest(LARGE))
    const range = request.headers.range ?? ''
    const isWhole = request.method === 'GET' && (range === '' || range.startsWith('bytes=0-4'))
    if (!isWhole || isFree) return sendFile(sent, request, response)
    response.writeHead(200, { 'content-length': sent.length, etag: `"${digest(LARGE)}"` })
    response.write(sent.subarray(0, first))
    waiting.push(response)
  }
  const finish = () => {
    isFree = true
    for (const response of waiting.splice(0)) response.end(sent.subarray(first))
  }
  return { answer, finish, count: () => waiting.length }
}

function countBytes({ body }: Response) {
  const chunks = body?.values()
  let bytes = 0
  return {
    /** Reads on until so many have come. */
    async until(wanted: number) {
      while (bytes < wanted) {
        const { value, done } = (await chunks?.next()) ?? { done: true, value: undefined }
        if (done === true || value === undefined) throw new Error(`ended after ${bytes}`)
        bytes += value.length
      }
    },
  }
}

test('a client gets bytes and far ranges while the image is still on its way', async () => {
  await using folder = await makeFolder()
  const slow = holdBack(2 * MIB)
  await using main = await startHostileServer(slow.answer)
  await using follower = await serveFollower(folder.path, main.origin)
  const answer = await fetch(`${follower.base}/files/a.img`)
  assert.is(answer.headers.get('content-length'), String(LARGE.length))
  const body = countBytes(answer)
  await body.until(2 * MIB)
  const far = await read(`${follower.base}/files/a.img`, { range: 'bytes=-70000' })
  assert.is(far.answer.status, 206)
  assert.ok(far.bytes.equals(LARGE.subarray(-70_000)))
  assert.equal(await listHeld(folder.path), [])
  slow.finish()
  await body.until(LARGE.length)
  await until(async () => (await listHeld(folder.path)).length === 1)
})

test('bytes that are not those of their digest are neither served whole nor kept', async () => {
  await using folder = await makeFolder()
  let isHonest = false
  const lie = Buffer.from(LARGE)
  lie[10 * MIB] = (lie[10 * MIB] ?? 0) ^ 1
  await using main = await startHostileServer((request, response) => {
    response.setHeader('x-withcache-sha256', digest(LARGE))
    sendFile(isHonest ? LARGE : lie, request, response)
  })
  const warned: string[] = []
  let minutes = 0
  const elapsed = () => performance.now() + minutes * 60_000
  const warn = (message: string) => void warned.push(message)
  await using follower = await serveFollower(folder.path, main.origin, { elapsed, warn })
  const url = `${follower.base}/files/a.img`
  const got = await read(url).catch(() => null)
  assert.is(got, null, 'the connection ends before the last byte')
  await until(() => warned.length > 0)
  assert.match(warned[0] ?? '', /a\.img is not kept: .* but [0-9a-f]{64} was expected/)
  assert.equal(await listHeld(folder.path), [])
  const [status, words] = await why(url)
  assert.is(status, 502)
  assert.match(words, `${main.origin} sends other bytes than it says`)
  isHonest = true
  minutes = 2
  assert.ok((await read(url)).bytes.equals(LARGE))
})

test('caches that follow each other in a circle say so', async () => {
  await using folder = await makeFolder()
  let target = ''
  await using door = await startHostileServer((request, response) => {
    const { method, headers, url = '' } = request
    const on = http.request(`${target}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      answer.pipe(response)
    })
    on.end()
  })
  await using follower = await serveFollower(folder.path, door.origin)
  target = follower.base
  for (const path of ['/files/a.img', '/catalog']) {
    const [status, words] = await why(`${follower.base}${path}`)
    assert.is(status, 502)
    // Nobody waits for an answer that is its own.
    assert.match(words, 'HTTP 502')
  }
})

test('two real caches: either one is killed in the middle, and no byte is wrong or fetched again', async () => {
  await using folder = await makeFolder()
  const state = join(folder.path, 'main')
  const near = join(folder.path, 'near')
  await using source = await startHostileServer((request, response) =>
    sendFile(LARGE, request, response),
  )
  let main = await startCache(state)
  await using _main = { [Symbol.asyncDispose]: async () => main[Symbol.asyncDispose]() }
  const src = `${source.origin}/a.img`
  const added = await fetch(`${main.base}/catalog/entries`, {
    method: 'POST',
    headers: { authorization: `Bearer ${main.token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ src }),
  })
  assert.is(added.status, 201)
  await until(async () => (await fetch(blobUrl(main.base, src))).ok)
  await until(async () => (await read(blobUrl(main.base, src))).bytes.equals(LARGE))
  // A slow line, which also counts what is asked.
  const ranges: string[] = []
  await using line = await startHostileServer((request, response) => {
    const { method, headers, url = '' } = request
    if (method === 'GET') ranges.push(headers.range ?? 'all')
    const on = http.request(`${main.base}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers)
      void slowly(answer, response)
    })
    on.on('error', () => response.destroy())
    on.end()
  })
  const env = { FLASHER_CACHE_FOLLOW: line.origin }
  const part = join(near, 'cache/.follow/parts', `${digest(LARGE)}.part`)
  const partBytes = async () => (await stat(part).catch(() => null))?.size ?? 0
  {
    await using follower = await startCache(near, env)
    const reading = read(blobUrl(follower.base, src)).catch(() => null)
    await until(async () => (await partBytes()) > 4 * MIB)
    await follower.kill('SIGKILL')
    assert.is(await reading, null)
  }
  const before = await partBytes()
  assert.ok(before < LARGE.length)
  ranges.length = 0
  await using follower = await startCache(near, env)
  await until(async () => (await partBytes()) > before + MIB)
  assert.match(ranges.at(-1) ?? '', new RegExp(`^bytes=${before}-`), ranges.join())
  const { base } = main
  await main.kill('SIGKILL')
  main = await startCache(state, { FLASHER_CACHE_PORT: new URL(base).port })
  const url = blobUrl(follower.base, src)
  await until(async () => (await read(url).catch(() => null))?.bytes.equals(LARGE) === true)
  await until(async () => (await listHeld(join(near, 'cache'))).length === 1)
  await main.kill('SIGTERM')
  const judged = await promisify(execFile)(
    'curl',
    ['-s', '-r', '100-199', `${url}?sha256=${digest(LARGE)}`],
    { encoding: 'buffer' },
  )
  assert.ok(judged.stdout.equals(LARGE.subarray(100, 200)))
})

async function slowly(answer: http.IncomingMessage, response: http.ServerResponse) {
  try {
    for await (const chunk of answer) {
      response.write(chunk)
      await sleep(4)
    }
    response.end()
  } catch {
    response.destroy()
  }
}

test.run()
