import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { collect, createRandom, faultOf, makeBytes } from '#test/support/collect.ts'
import {
  sendFile,
  startHostileServer,
  type Answer,
  type FileBehaviour,
} from '#test/support/http/hostile-server.ts'

const test = suite('sources: resuming')
const BYTES = makeBytes(1_000_003)
const OTHER = makeBytes(1_000_003, 2)
const DATE = 'Wed, 21 Oct 2015 07:28:00 GMT'
const sources = createSources({ env: {}, retryMs: 1, stallMs: 5000 })

/** A behaviour for each request; HEAD and the probe are numbers 0 and 1, and are decent. */
const behave = (behaviourOf: (count: number) => FileBehaviour, bytes = BYTES): Answer => {
  return (request, response, count) =>
    sendFile(bytes, request, response, count < 2 ? behaviourOf(1_000_000) : behaviourOf(count))
}

async function streamed(answer: Answer) {
  await using server = await startHostileServer(answer)
  await using source = await sources.open(`${server.origin}/x.img`)
  const got = await collect(source.stream())
  return { got, seen: server.seen.slice(2) }
}

async function broken(answer: Answer) {
  await using server = await startHostileServer(answer)
  await using source = await sources.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.is(fault.code, 'source-broken')
  assert.ok(fault.message.startsWith(`${server.origin}/x.img: `))
  return { fault, seen: server.seen.slice(2) }
}

test('goes on after the last byte, with a closed range and the version', async () => {
  const { got, seen } = await streamed(behave((n) => (n === 2 ? { cutAfter: 300_000 } : {})))
  assert.ok(got.equals(BYTES))
  assert.is(seen.length, 2)
  assert.is(seen[0]?.headers.range, undefined)
  assert.match(seen[1]?.headers.range ?? '', /^bytes=[1-9]\d*-1000002$/)
  assert.is(seen[1]?.headers['if-range'], '"one"')
})

test('a server that sends all of a file where If-Range has an ETag is asked without it', async () => {
  let etag = '"one"'
  const answer: Answer = (request, response, count) => {
    if (request.headers['if-range'] !== undefined) {
      delete request.headers.range
      delete request.headers['if-range']
    }
    sendFile(BYTES, request, response, { etag, ...(count === 2 ? { cutAfter: 300_000 } : {}) })
  }
  const { got, seen } = await streamed(answer)
  assert.ok(got.equals(BYTES))
  assert.match(seen.at(-1)?.headers.range ?? '', /^bytes=[1-9]\d*-1000002$/)
  const { fault } = await broken((request, response, count) => {
    etag = count < 4 ? '"one"' : '"two"'
    answer(request, response, count)
  })
  assert.match(fault.message, 'the server sent the whole file where a part was asked for')
})

test('survives a hundred cuts at random bytes', async () => {
  const random = createRandom(7)
  let cuts = 0
  const { got } = await streamed(
    behave((count) => {
      if (count > 1000 || cuts === 100) return {}
      cuts += 1
      return { cutAfter: Math.floor(random() * 20_000) + 1 }
    }),
  )
  assert.is(cuts, 100)
  assert.ok(got.equals(BYTES))
})

test('reads at a place through cuts as well', async () => {
  const answer = behave((count) => (count % 2 === 0 && count < 1000 ? { cutAfter: 1000 } : {}))
  await using server = await startHostileServer(answer)
  await using source = await sources.open(`${server.origin}/x.img`)
  const into = Buffer.alloc(5000)
  assert.is(await source.readAt?.(into, 4321), into.length)
  assert.ok(into.equals(BYTES.subarray(4321, 9321)))
})

test('takes the date where there is no strong ETag', async () => {
  const weak = { etag: 'W/"one"', lastModified: DATE }
  const { got, seen } = await streamed(
    behave((n) => (n === 2 ? { ...weak, cutAfter: 1000 } : weak)),
  )
  assert.ok(got.equals(BYTES))
  assert.is(seen[1]?.headers['if-range'], DATE)
})

test('goes on after a stall', async () => {
  const answer = behave((n) => (n === 2 ? { stallAfter: 300_000 } : {}))
  await using server = await startHostileServer(answer)
  const hasty = createSources({ env: {}, retryMs: 1, stallMs: 250 })
  await using source = await hasty.open(`${server.origin}/x.img`)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('a slow reader is no stall', async () => {
  await using server = await startHostileServer(behave(() => ({})))
  const hasty = createSources({ env: {}, retryMs: 1, stallMs: 300 })
  await using source = await hasty.open(`${server.origin}/x.img`)
  let got = 0
  let asked = 0
  let chunks = 0
  for await (const chunk of source.stream()) {
    chunks += 1
    got += chunk.length
    if (chunks === 1) {
      asked = server.seen.length
      await new Promise((resolve) => setTimeout(resolve, 700))
    } else if (chunks === 2) assert.is(server.seen.length, asked, 'what it had was thrown away')
  }
  assert.is(got, BYTES.length)
})

test('goes on after answers that mean "later"', async () => {
  const { got, seen } = await streamed((request, response, count) => {
    if (count === 2) sendFile(BYTES, request, response, { cutAfter: 5000 })
    else if (count < 6 && count > 2) {
      response.writeHead([503, 429, 502][count - 3] ?? 503, { 'retry-after': '0' }).end('busy')
    } else sendFile(BYTES, request, response)
  })
  assert.ok(got.equals(BYTES))
  assert.is(seen.length, 5)
})

test('takes parts that are smaller than asked for', async () => {
  const { got } = await streamed((request, response, count) => {
    const [, from = '0'] = /^bytes=(\d+)-\d+$/.exec(request.headers.range ?? '') ?? []
    if (count > 2) request.headers.range = `bytes=${from}-${Number(from) + 99_999}`
    sendFile(BYTES, request, response, count === 2 ? { cutAfter: 1000 } : {})
  })
  assert.ok(got.equals(BYTES))
})

test('gives up after a few tries without a byte, and says where', async () => {
  const { fault, seen } = await broken(
    behave((n) => (n === 2 ? { cutAfter: 300_000 } : n < 1000 ? { cutAfter: 0 } : {})),
  )
  assert.match(
    fault.message,
    /: connection closed by the server; gave up after 5 more tries at byte [1-9]\d* of 1000003$/,
  )
  assert.is(seen.length, 6)
})

test('a file that is shorter than the server says is never taken as whole', async () => {
  await using server = await startHostileServer((request, response, count) => {
    const whole = Buffer.concat([BYTES, Buffer.alloc(500)])
    const cutAfter = BYTES.length - Number(/\d+/.exec(request.headers.range ?? '0')?.[0])
    sendFile(whole, request, response, count < 2 ? {} : { cutAfter })
  })
  await using source = await sources.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.match(fault.message, /gave up .* at byte 1000003 of 1000503$/)
})

test('notices another version, and never joins two files', async () => {
  const cut = { cutAfter: 300_000 }
  for (const later of [{ etag: '"two"' }, { etag: null, lastModified: DATE }]) {
    const { fault } = await broken((request, response, count) => {
      const behaviour = count < 2 ? {} : count === 2 ? cut : later
      sendFile(count <= 2 ? BYTES : OTHER, request, response, behaviour)
    })
    assert.match(fault.message, /(the file on the server changed|the whole file) .*at byte \d+ of/)
  }
})

test('notices the same ETag with another size', async () => {
  const { fault } = await broken(
    behave((n) => (n === 2 ? { cutAfter: 300_000 } : n < 1000 ? { totalLie: 2_000_000 } : {})),
  )
  assert.match(fault.message, /the file on the server changed at byte \d+ of 1000003$/)
  assert.match(fault.hint ?? '', /start over/)
})

test('notices a file that changed since it was found', async () => {
  const { fault } = await broken(behave((n) => (n < 1000 ? { etag: '"two"' } : {})))
  assert.match(fault.message, /the file on the server changed at byte 0 of/)
  const longer = await broken((request, response, count) =>
    sendFile(count < 2 ? BYTES : BYTES.subarray(1), request, response),
  )
  assert.match(longer.fault.message, /the file on the server changed at byte 0 of/)
})

test('a part whose length is not what its range says is refused', async () => {
  for (const lengthLie of [-1, 1]) {
    const { fault } = await broken(
      behave((n) => (n === 2 ? { cutAfter: 300_000 } : n < 1000 ? { lengthLie } : {})),
    )
    assert.match(fault.message, /the server sent other bytes than were asked for at byte/)
  }
})

test('bytes after the end of an answer hurt nobody', async () => {
  await using server = await startHostileServer((request, response, count) => {
    if (count < 2) return sendFile(BYTES, request, response)
    const head = 'HTTP/1.1 200 OK\r\nETag: "one"\r\nContent-Length: 1000003\r\n\r\n'
    request.socket.end(Buffer.concat([Buffer.from(head), BYTES, Buffer.from('and some more')]))
  })
  await using source = await sources.open(`${server.origin}/x.img`)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('without ranges or a version it cannot go on, and says so', async () => {
  for (const [behaviour, words] of [
    [{ ranges: false }, /cannot go on \(the server sends no parts\) at byte \d+ of 1000003$/],
    [{ etag: null }, /cannot go on \(the server names no version of the file\) at byte \d+ of/],
  ] as const) {
    const { fault, seen } = await broken(
      behave((n) => (n < 1000 ? { ...behaviour, cutAfter: 300_000 } : behaviour)),
    )
    assert.match(fault.message, words)
    assert.match(fault.hint ?? '', /download the image first/)
    assert.is(seen.length, 1)
  }
})

test.run()
