/** Reads a remote file for a Source: in order, and at any offset if the server supports ranges. */
import { setMaxListeners } from 'node:events'
import type { RangeRequest, Representation } from '#kit/net/rules/http-range.ts'
import { brokenAt } from '#kit/net/rules/network-failure.ts'
import { type Remote, receive } from '#kit/net/http-remote.ts'
import type { Source } from './source.ts'

export function createEnding(given: AbortSignal | undefined) {
  const closing = new AbortController()
  const signal = AbortSignal.any([closing.signal, ...(given ? [given] : [])])
  setMaxListeners(0, signal) // one for each request under way
  return { signal, end: () => closing.abort() }
}

/** `slowMs`: waiting after which a slow server is a Fault `source-broken`; absent: never. */
export function createRemoteReads(
  remote: Remote,
  known: Representation,
  slowMs: number | null = null,
): Pick<Source, 'readAt' | 'stream'> {
  const { sizeBytes } = known
  const pace = { waitedMs: 0, bytes: 0 }

  function read(wanted: RangeRequest): AsyncIterable<Buffer> {
    const chunks = receive({ remote, known, wanted })
    if (slowMs === null) return chunks
    const position = { name: remote.name, at: wanted.from, sizeBytes }
    return watchPace(chunks, pace, { position, slowMs })
  }

  async function readAt(into: Buffer, offset: number): Promise<number> {
    const to = Math.min(offset + into.length, sizeBytes ?? 0)
    let filled = 0
    const wanted = { from: offset, to, ranged: true }
    for await (const chunk of read(wanted)) {
      filled += chunk.copy(into, filled)
    }
    return filled
  }

  async function* stream(from = 0) {
    if (from > 0 && !known.ranges) {
      const position = { name: remote.name, at: from, sizeBytes }
      throw brokenAt(position, 'the server sends no parts, so none can start')
    }
    yield* read({ from, to: sizeBytes, ranged: from > 0 })
  }

  return { readAt: known.ranges && sizeBytes !== null ? readAt : null, stream }
}

/** Bytes per second of one request; below, a server is slow. */
const SLOW_RATE = 64 * 1024

interface PaceLimit {
  readonly position: Parameters<typeof brokenAt>[0]
  readonly slowMs: number
}

/** Counts only waits for the server, over all requests: a reader may take its time. */
async function* watchPace(
  chunks: AsyncIterable<Buffer>,
  pace: { waitedMs: number; bytes: number },
  { position, slowMs }: PaceLimit,
): AsyncGenerator<Buffer, void, undefined> {
  let since = performance.now()
  for await (const chunk of chunks) {
    pace.waitedMs += performance.now() - since
    pace.bytes += chunk.length
    if (pace.waitedMs >= slowMs) {
      const rate = (pace.bytes / pace.waitedMs) * 1000
      Object.assign(pace, { waitedMs: 0, bytes: 0 })
      if (rate < SLOW_RATE) {
        throw brokenAt(position, `the server is slow (${Math.round(rate / 1024)} KiB/s)`)
      }
    }
    yield chunk
    since = performance.now()
  }
}
