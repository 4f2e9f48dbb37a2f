import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer, type Answer } from '#test/support/http/hostile-server.ts'

const test = suite('sources: cancelling')
const BYTES = makeBytes(2_000_003)
// Nothing below ends by itself within the test's time: only the signal can end it.
const sources = createSources({ env: {}, retryMs: 600_000, stallMs: 600_000 })

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
      await using source = await sources.open(`${server.origin}/x.img`, { signal: cancel.signal })
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
  const source = await sources.open(`${server.origin}/x.img`, { signal: cancel.signal })
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
  const fault = await faultOf(() => sources.open('http://127.0.0.1:1/x.img', { signal }))
  assert.is(fault.code, 'cancelled')
})

test.run()
