import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdtempDisposable,
  open,
  rename,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Source } from '#engine/image/sources/source.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { createShell } from '#kit/host/shell.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import {
  type Answer,
  type FileBehaviour,
  sendFile,
  startHostileServer,
} from '#test/support/http/hostile-server.ts'

const test = suite('sources')
const sources = createSources({ env: {} })
const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-sources-'))
const BYTES = makeBytes(3_500_001)

async function savedIn(folder: string) {
  const path = join(folder, 'disk.img.gz')
  await writeFile(path, BYTES)
  return path
}

test('reads a file from any byte on, and at any place', async () => {
  await using folder = await temporary()
  const path = await savedIn(folder.path)
  await using source = await sources.open(path)
  assert.equal(
    [source.name, source.fileName, source.path, source.url, source.sizeBytes],
    [path, 'disk.img.gz', path, null, BYTES.length],
  )
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(BYTES.subarray(1_234_567).equals(await collect(source.stream(1_234_567))))
  assert.is((await collect(source.stream(BYTES.length))).length, 0)
  const into = Buffer.alloc(1000)
  assert.is(await source.readAt?.(into, 2_000_000), 1000)
  assert.ok(into.equals(BYTES.subarray(2_000_000, 2_001_000)))
  assert.is(await source.readAt?.(into, BYTES.length - 10), 10)
  assert.is(await source.readAt?.(into, BYTES.length + 10), 0)
})

test('a reader that stops early leaves nothing behind', async () => {
  await using folder = await temporary()
  await using source = await sources.open(await savedIn(folder.path))
  for await (const chunk of source.stream()) {
    assert.ok(chunk.length > 0)
    break
  }
})

test('an empty file has no chunks', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'empty.img')
  await writeFile(path, '')
  await using source = await sources.open(path)
  assert.is(source.sizeBytes, 0)
  assert.is((await collect(source.stream())).length, 0)
})

test('follows a link to a file', async () => {
  await using folder = await temporary()
  const link = join(folder.path, 'latest.img')
  await symlink(await savedIn(folder.path), link)
  await using source = await sources.open(link)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('refuses by name what is absent or no regular file', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await createShell({ env: process.env }).require(['mkfifo', at('pipe')])
  const listener = createServer().listen(at('socket'))
  try {
    await once(listener, 'listening')
    await symlink('loop', at('loop'))
    const rows = [
      [at('absent.img'), 'input-missing', /^image not found: .*absent\.img$/],
      [at('pipe/x.img'), 'input-missing', /^image not found/],
      [folder.path, 'input-invalid', / is a directory$/],
      [at('pipe'), 'input-invalid', / is a named pipe$/],
      [at('socket'), 'input-invalid', / is a socket$/],
      ['/dev/null', 'input-invalid', /: \/dev\/null is a character device$/],
      [at('loop'), 'input-invalid', /ELOOP/],
      ['nul\0byte', 'input-invalid', /cannot be opened/],
    ] as const
    for (const [path, code, words] of rows) {
      const fault = await faultOf(() => sources.open(path))
      assert.is(fault.code, code, path)
      assert.match(fault.message, words)
    }
  } finally {
    listener.close()
  }
})

const changes: Readonly<Record<string, readonly [RegExp, (path: string) => Promise<unknown>]>> = {
  shrinks: [/shorter|changed/, (path) => truncate(path, 2_000_000)],
  grows: [/changed/, (path) => truncate(path, 4_000_000)],
  'is touched': [/changed/, (path) => utimes(path, 1, 1)],
  'is replaced': [
    /replaced/,
    async (path) => {
      await writeFile(`${path}.new`, BYTES)
      await rename(`${path}.new`, path)
    },
  ],
}

for (const [what, [words, change]] of Object.entries(changes)) {
  test(`notices a file that ${what} while it is read`, async () => {
    await using folder = await temporary()
    const path = await savedIn(folder.path)
    await using source = await sources.open(path)
    const fault = await faultOf(async () => {
      let isChanged = false
      for await (const _ of source.stream()) {
        if (!isChanged) await change(path)
        isChanged = true
      }
    })
    assert.is(fault.code, 'source-broken')
    assert.match(fault.message, words)
  })
}

test('notices a change between two reads at a place', async () => {
  await using folder = await temporary()
  const path = await savedIn(folder.path)
  await using source = await sources.open(path)
  await using writer = await open(path, 'r+')
  await writer.write(Buffer.from('other'), 0, 5, 0)
  await utimes(path, 1, 1)
  const fault = await faultOf(async () => source.readAt?.(Buffer.alloc(10), 0))
  assert.match(fault.message, /changed while it was read at byte 0 of 3500001/)
})

test('reads standard input once', async () => {
  await using folder = await temporary()
  const child = spawn('cat', [await savedIn(folder.path)], { stdio: ['ignore', 'pipe', 'inherit'] })
  await using source = await createSources({ env: {}, stdin: child.stdout }).open('-')
  assert.equal(
    [source.name, source.fileName, source.sizeBytes, source.readAt],
    ['-', '-', null, null],
  )
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.is((await faultOf(() => collect(source.stream()))).code, 'misuse')
})

test('cancels at once while standard input says nothing', async () => {
  const child = spawn('cat', [], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const cancel = new AbortController()
    const source = await createSources({ env: {}, stdin: child.stdout }).open('-', cancel)
    const reading = faultOf(() => collect(source.stream()))
    cancel.abort()
    assert.is((await reading).code, 'cancelled')
  } finally {
    child.stdin.end()
    await once(child, 'close')
  }
})

test('cancels between two chunks of a file', async () => {
  await using folder = await temporary()
  const cancel = new AbortController()
  await using source = await sources.open(await savedIn(folder.path), { signal: cancel.signal })
  const fault = await faultOf(async () => {
    for await (const _ of source.stream()) cancel.abort()
  })
  assert.is(fault.code, 'cancelled')
})

test('says of an oras:// reference what is wrong with it', async () => {
  const fault = await faultOf(() => sources.open('oras://registry.test/a/b'))
  assert.is(
    fault.message,
    'malformed: it must have one :tag or one @sha256:<64 digits>: oras://registry.test/a/b',
  )
})

const retrying = createSources({ env: {}, retryMs: 1, stallMs: 5000 })

const serve = (behaviour: FileBehaviour = {}, bytes = BYTES) =>
  startHostileServer((request, response) => sendFile(bytes, request, response, behaviour))

test('reads a file as a whole, from a byte on, and at any place', async () => {
  await using server = await serve()
  const url = `${server.origin}/images/debian%2012.img.zst?a=1`
  await using source = await retrying.open(url)
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
  await using source = await retrying.open(`${server.origin}/x.img`)
  for (let at = 0; at < 20; at += 1) await source.readAt?.(Buffer.alloc(100), at * 1000)
  const ranges = server.seen.slice(-20).map(({ headers }) => headers.range)
  assert.is(ranges.at(-1), 'bytes=19000-19099')
  assert.ok(server.openSockets() <= 2)
})

test('reads at many places at once', async () => {
  await using server = await serve()
  await using source = await retrying.open(`${server.origin}/x.img`)
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
    await using source = await retrying.open(`${server.origin}/x.img`)
    assert.is(source.sizeBytes, BYTES.length)
    assert.ok(BYTES.equals(await collect(source.stream())))
  })
}

test('has no random access where the server sends no parts', async () => {
  for (const headers of [{}, { 'accept-ranges': 'none' }, { 'accept-ranges': 'bytes' }]) {
    await using server = await serve({ ranges: false, headers })
    await using source = await retrying.open(`${server.origin}/x.img`)
    assert.is(source.readAt, null)
    assert.is(source.sizeBytes, BYTES.length)
    assert.ok(BYTES.equals(await collect(source.stream())))
    const fault = await faultOf(() => collect(source.stream(5)))
    assert.is(fault.code, 'source-broken')
  }
})

test('takes the bytes as they are, whatever Content-Encoding says', async () => {
  await using server = await serve({ headers: { 'content-encoding': 'gzip' } })
  await using source = await retrying.open(`${server.origin}/x.img.gz`)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.is(server.seen.at(-1)?.headers['accept-encoding'], 'identity')
})

test('reads an empty file', async () => {
  for (const head of [200, 405]) {
    await using server = await serve({ head }, Buffer.alloc(0))
    await using source = await retrying.open(`${server.origin}/x.img`)
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
  await using source = await retrying.open(`${chunked.origin}/x.img`)
  assert.is(source.sizeBytes, null)
  assert.ok(BYTES.equals(await collect(source.stream())))
  await using other = await retrying.open(`${server.origin}/x.img`)
  assert.ok(BYTES.equals(await collect(other.stream())))
})

test('learns the size as late as from the download itself', async () => {
  await using server = await startHostileServer((request, response) => {
    if (request.method === 'HEAD') response.writeHead(405).end()
    else if (request.headers.range === undefined) sendFile(BYTES, request, response)
    else response.writeHead(200, { 'transfer-encoding': 'chunked' }).end(BYTES)
  })
  await using source = await retrying.open(`${server.origin}/x.img`)
  assert.is(source.sizeBytes, null)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.is(server.seen.length, 3)
})

test('ends where the server switches to another protocol', async () => {
  await using server = await startHostileServer((request) => {
    request.socket.write('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n')
  })
  const fault = await faultOf(() => retrying.open(`${server.origin}/x.img`))
  assert.is(fault.code, 'input-missing')
})

test('refuses a body whose end is only the end of the connection', async () => {
  await using server = await startHostileServer((request) => {
    request.socket.end(`HTTP/1.0 200 OK\r\n\r\n${request.method === 'HEAD' ? '' : 'abc'}`)
  })
  await using source = await retrying.open(`${server.origin}/x.img`)
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
    const fault = await faultOf(() => retrying.open(url))
    assert.is(fault.code, 'input-missing')
    assert.is(fault.message, `image URL not reachable: ${url} (HTTP ${status})`)
    assert.ok(await server.isQuiet())
  }
  const gone = await startHostileServer(() => {})
  await gone[Symbol.asyncDispose]()
  const refused = await faultOf(() => retrying.open(`${gone.origin}/x.img`))
  assert.match(refused.message, /^image URL not reachable: .* \(connection refused\)$/)
  const unknown = await faultOf(() => retrying.open('http://host.invalid/x.img'))
  assert.match(unknown.message, /\((host name not found|the name server does not answer)\)$/)
})

test('says so where no HTTP is spoken', async () => {
  await using server = await startHostileServer((request) => {
    request.socket.end('SSH-2.0-nonsense\r\n')
  })
  const fault = await faultOf(() => retrying.open(`${server.origin}/x.img`))
  assert.match(fault.message, /\(the server does not speak HTTP\)$/)
})

test('waits where a busy server says how long', async () => {
  await using server = await startHostileServer((request, response, count) => {
    if (count < 3) response.writeHead(count === 0 ? 429 : 503, { 'retry-after': '0' }).end()
    else sendFile(BYTES, request, response)
  })
  await using source = await retrying.open(`${server.origin}/x.img`)
  assert.is(source.sizeBytes, BYTES.length)
})

test('gives up on a server that never answers', async () => {
  await using server = await startHostileServer(() => {})
  const hasty = createSources({ env: {}, stallMs: 40 })
  const fault = await faultOf(() => hasty.open(`${server.origin}/x.img`))
  assert.match(fault.message, /\(no data for 0\.04 s\)$/)
  assert.ok(await server.isQuiet())
})

test('leaves no connection behind', async () => {
  await using server = await serve()
  const source = await retrying.open(`${server.origin}/x.img`)
  for await (const _ of source.stream()) break
  await source[Symbol.asyncDispose]()
  assert.ok(await server.isQuiet())
})

// Nothing below ends by itself within the test's time: only the signal can end it.
const waiting = createSources({ env: {}, retryMs: 600_000, stallMs: 600_000 })

const read = (source: Source) => collect(source.stream())

/** `from`: the first request that is answered in that way; those before it are decent. */
const phases: Readonly<
  Record<string, { from: number; answer: Answer; act: (source: Source) => Promise<unknown> }>
> = {
  'HEAD is not answered': { from: 0, answer: () => {}, act: read },
  'the probe is not answered': { from: 1, answer: () => {}, act: read },
  'a busy server makes us wait before opening': {
    from: 0,
    answer: (_, response) => response.writeHead(503, { 'retry-after': '60' }).end(),
    act: read,
  },
  'the stream is not answered': { from: 2, answer: () => {}, act: read },
  'the stream stalls': {
    from: 2,
    answer: (request, response) => sendFile(BYTES, request, response, { stallAfter: 500_000 }),
    act: read,
  },
  'the next try is waited for': {
    from: 2,
    answer: (request, response) => sendFile(BYTES, request, response, { cutAfter: 500_000 }),
    act: read,
  },
  'a busy server makes us wait in the middle': {
    from: 2,
    answer: (_, response) => response.writeHead(503, { 'retry-after': '60' }).end(),
    act: read,
  },
  'a part is not answered': {
    from: 2,
    answer: () => {},
    act: async (source) => source.readAt?.(Buffer.alloc(100), 1000),
  },
  'a part stalls': {
    from: 2,
    answer: (request, response) => sendFile(BYTES, request, response, { stallAfter: 50 }),
    act: async (source) => source.readAt?.(Buffer.alloc(100), 1000),
  },
}

for (const [when, { from, answer, act }] of Object.entries(phases)) {
  test(`ends at once while ${when}`, async () => {
    const cancel = new AbortController()
    await using server = await startHostileServer((request, response, count) => {
      if (count < from) return sendFile(BYTES, request, response)
      answer(request, response, count)
      if (count === from) setTimeout(() => cancel.abort(), 30)
    })
    const fault = await faultOf(async () => {
      await using source = await waiting.open(`${server.origin}/x.img`, { signal: cancel.signal })
      await act(source)
    })
    assert.is(fault.code, 'cancelled')
    assert.is(fault.message, `reading ${server.origin}/x.img was cancelled`)
    assert.ok(await server.isQuiet())
  })
}

test('ends at the next chunk when the reader itself cancels', async () => {
  await using server = await startHostileServer((request, response) =>
    sendFile(BYTES, request, response),
  )
  const cancel = new AbortController()
  const source = await waiting.open(`${server.origin}/x.img`, { signal: cancel.signal })
  let chunks = 0
  const fault = await faultOf(async () => {
    for await (const _ of source.stream()) {
      chunks += 1
      cancel.abort()
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })
  assert.is(fault.code, 'cancelled')
  assert.is(chunks, 1)
  await source[Symbol.asyncDispose]()
  assert.ok(await server.isQuiet())
})

test('is not opened at all after the signal', async () => {
  const signal = AbortSignal.abort()
  const fault = await faultOf(() => waiting.open('http://127.0.0.1:1/x.img', { signal }))
  assert.is(fault.code, 'cancelled')
})

test.run()
