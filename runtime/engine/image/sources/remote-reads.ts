/** Reads a remote file for a Source: in order, and at any offset if the server supports ranges. */
import { setMaxListeners } from 'node:events'
import type { Representation } from '../../../kit/net/rules/http-range.ts'
import { brokenAt } from '../../../kit/net/rules/source-fault.ts'
import type { Remote } from '../../../kit/net/http-remote.ts'
import { receive } from '../../../kit/net/http-transfer.ts'
import type { Source } from './source.ts'

/** Ends all requests of a source: with its caller's signal, or before. */
export function createEnding(given: AbortSignal | undefined) {
  const closing = new AbortController()
  const signal = AbortSignal.any([closing.signal, ...(given ? [given] : [])])
  setMaxListeners(0, signal) // one for each request under way
  return { signal, end: () => closing.abort() }
}

export function createRemoteReads(
  remote: Remote,
  known: Representation,
): Pick<Source, 'readAt' | 'stream'> {
  const { sizeBytes } = known

  async function readAt(into: Buffer, offset: number): Promise<number> {
    const to = Math.min(offset + into.length, sizeBytes ?? 0)
    let filled = 0
    const wanted = { from: offset, to, ranged: true }
    for await (const chunk of receive({ remote, known, wanted })) {
      filled += chunk.copy(into, filled)
    }
    return filled
  }

  async function* stream(from = 0) {
    if (from > 0 && !known.ranges) {
      const place = { name: remote.name, at: from, sizeBytes }
      throw brokenAt(place, 'the server sends no parts, so none can start')
    }
    yield* receive({ remote, known, wanted: { from, to: sizeBytes, ranged: from > 0 } })
  }

  return { readAt: known.ranges && sizeBytes !== null ? readAt : null, stream }
}
