import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import {
  sendFile,
  startHostileServer,
  type FileBehaviour,
} from '#test/support/http/hostile-server.ts'

const test = suite('sources: http')
const BYTES = makeBytes(1_000_003)
const sources = createSources({ env: {}, retryMs: 1, stallMs: 5000 })

const serve = (behaviour: FileBehaviour = {}, bytes = BYTES) =>
  startHostileServer((request, response) => sendFile(bytes, request, response, behaviour))

test('reads a file as a whole, from a byte on, and at any place', async () => {
  await using server = await serve()
  const url = `${server.origin}/images/debian%2012.img.zst?a=1`
  await using source = await sources.open(url)
  assert.equal(
    [source.name, source.fileName, source.path, source.url, source.sizeBytes],
    [url, 'debian 12.img.zst', null, url, BYTES.length],
  )
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(BYTES.subarray(777_777).equals(await collect(source.stream(777_777))))
  assert.is((await collect(source.stream(BYTES.length))).length, 0)
  const into = Buffer.alloc(70_000)
  assert.is(await source.readAt?.(into, 500_000), into.length)
  assert.ok(into.equals(BYTES.subarray(500_000, 570_000)))
  assert.is(await source.readAt?.(into, BYTES.length - 3), 3)
  assert.is(await source.readAt?.(into, BYTES.length), 0)
})

test('asks closed ranges, on kept connections', async () => {
  await using server = await serve()
  await using source = await sources.open(`${server.origin}/x.img`)
  for (let at = 0; at < 20; at += 1) await source.readAt?.(Buffer.alloc(100), at * 1000)
  const ranges = server.seen.slice(-20).map(({ headers }) => headers.range)
  assert.is(ranges.at(-1), 'bytes=19000-19099')
  assert.ok(server.openSockets() <= 2)
})

test('reads at many places at once', async () => {
  await using server = await serve()
  await using source = await sources.open(`${server.origin}/x.img`)
  const places = Array.from({ length: 40 }, (_, n) => n * 20_011)
  const parts = await Promise.all(
    places.map(async (at) => {
      const into = Buffer.alloc(999)
      await source.readAt?.(into, at)
      return into.equals(BYTES.subarray(at, at + 999))
    }),
  )
  assert.ok(parts.every(Boolean))
})

for (const head of [403, 404, 405, 501, 'hang-up'] as const) {
  test(`opens where HEAD ends in ${head}`, async () => {
    await using server = await serve({ head })
    await using source = await sources.open(`${server.origin}/x.img`)
    assert.is(source.sizeBytes, BYTES.length)
    assert.ok(BYTES.equals(await collect(source.stream())))
  })
}

test('has no random access where the server sends no parts', async () => {
  for (const headers of [{}, { 'accept-ranges': 'none' }, { 'accept-ranges': 'bytes' }]) {
    await using server = await serve({ ranges: false, headers })
    await using source = await sources.open(`${server.origin}/x.img`)
    assert.is(source.readAt, null)
    assert.is(source.sizeBytes, BYTES.length)
    assert.ok(BYTES.equals(await collect(source.stream())))
    const fault = await faultOf(() => collect(source.stream(5)))
    assert.is(fault.code, 'source-broken')
  }
})

test('takes the bytes as they are, whatever Content-Encoding says', async () => {
  await using server = await serve({ headers: { 'content-encoding': 'gzip' } })
  await using source = await sources.open(`${server.origin}/x.img.gz`)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.is(server.seen.at(-1)?.headers['accept-encoding'], 'identity')
})

test('reads an empty file', async () => {
  for (const head of [200, 405]) {
    await using server = await serve({ head }, Buffer.alloc(0))
    await using source = await sources.open(`${server.origin}/x.img`)
    assert.is(source.sizeBytes, 0)
    assert.is((await collect(source.stream())).length, 0)
  }
})

test('reads a chunked answer of unknown size to its end', async () => {
  await using server = await startHostileServer((request, response) => {
    response.writeHead(200)
    response.end(request.method === 'HEAD' ? undefined : BYTES)
    response.flushHeaders()
  })
  await using chunked = await startHostileServer((request, response) => {
    response.writeHead(200, { 'transfer-encoding': 'chunked' })
    if (request.method !== 'HEAD') response.write(BYTES)
    response.end()
  })
  await using source = await sources.open(`${chunked.origin}/x.img`)
  assert.is(source.sizeBytes, null)
  assert.ok(BYTES.equals(await collect(source.stream())))
  await using other = await sources.open(`${server.origin}/x.img`)
  assert.ok(BYTES.equals(await collect(other.stream())))
})

test('learns the size as late as from the download itself', async () => {
  await using server = await startHostileServer((request, response) => {
    if (request.method === 'HEAD') response.writeHead(405).end()
    else if (request.headers.range === undefined) sendFile(BYTES, request, response)
    else response.writeHead(200, { 'transfer-encoding': 'chunked' }).end(BYTES)
  })
  await using source = await sources.open(`${server.origin}/x.img`)
  assert.is(source.sizeBytes, null)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.is(server.seen.length, 3)
})

test('ends where the server switches to another protocol', async () => {
  await using server = await startHostileServer((request) => {
    request.socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n')
  })
  const fault = await faultOf(() => sources.open(`${server.origin}/x.img`))
  assert.is(fault.code, 'input-missing')
})

test('refuses a body whose end is only the end of the connection', async () => {
  await using server = await startHostileServer((request) => {
    request.socket.end(`HTTP/1.0 200 OK\r\n\r\n${request.method === 'HEAD' ? '' : 'abc'}`)
  })
  await using source = await sources.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.is(fault.code, 'source-broken')
  assert.match(fault.message, /neither the size nor the end/)
})

test('says why an image cannot be reached', async () => {
  for (const status of [401, 404, 410, 500, 503]) {
    await using server = await startHostileServer((_, response) => {
      response.writeHead(status).end('a page that explains')
    })
    const url = `${server.origin}/x.img`
    const fault = await faultOf(() => sources.open(url))
    assert.is(fault.code, 'input-missing')
    assert.is(fault.message, `image URL not reachable: ${url} (HTTP ${status})`)
    assert.ok(await server.isQuiet())
  }
  const gone = await startHostileServer(() => {})
  await gone[Symbol.asyncDispose]()
  const refused = await faultOf(() => sources.open(`${gone.origin}/x.img`))
  assert.match(refused.message, /^image URL not reachable: .* \(connection refused\)$/)
  const unknown = await faultOf(() => sources.open('http://host.invalid/x.img'))
  assert.match(unknown.message, /\((host name not found|the name server does not answer)\)$/)
})

test('says so where no HTTP is spoken', async () => {
  await using server = await startHostileServer((request) => {
    request.socket.end('SSH-2.0-nonsense\r\n')
  })
  const fault = await faultOf(() => sources.open(`${server.origin}/x.img`))
  assert.match(fault.message, /\(the server does not speak HTTP\)$/)
})

test('waits where a busy server says how long', async () => {
  await using server = await startHostileServer((request, response, count) => {
    if (count < 3) response.writeHead(count === 0 ? 429 : 503, { 'retry-after': '0' }).end()
    else sendFile(BYTES, request, response)
  })
  await using source = await sources.open(`${server.origin}/x.img`)
  assert.is(source.sizeBytes, BYTES.length)
})

test('gives up on a server that never answers', async () => {
  await using server = await startHostileServer(() => {})
  const hasty = createSources({ env: {}, stallMs: 40 })
  const fault = await faultOf(() => hasty.open(`${server.origin}/x.img`))
  assert.match(fault.message, /\(no byte for 0\.04 s\)$/)
  assert.ok(await server.isQuiet())
})

test('leaves no connection behind', async () => {
  await using server = await serve()
  const source = await sources.open(`${server.origin}/x.img`)
  for await (const _ of source.stream()) break
  await source[Symbol.asyncDispose]()
  assert.ok(await server.isQuiet())
})

test.run()
