/** The body of a request on its way to another server: streamed, and its beginning kept, so that a small one can be sent again. */
import type { ClientRequest, IncomingMessage } from 'node:http'

/** What machines report of a run is smaller; an inventory is repeated by the machine itself. */
const MAX_KEPT_BYTES = 16 * 1024

export type KeptBody = ReturnType<typeof createKeptBody>

/** Nothing is read before `send`. */
export function createKeptBody(request: IncomingMessage) {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  const hasBody = encoding !== undefined || (length !== undefined && length !== '0')
  let kept: Buffer[] | null = []
  let [size, isBegun] = [0, false]

  function keep(piece: Buffer): void {
    size += piece.length
    if (size > MAX_KEPT_BYTES) kept = null
    else kept?.push(piece)
  }

  return {
    /** Whether all of it would be kept. */
    isSmall: !hasBody || Number(length) <= MAX_KEPT_BYTES,
    /** What frames it on the next connection. */
    headers: headersOf(request.method, encoding, length),
    /** Whether everything that was read of it is still known. */
    isWhole: () => kept !== null,
    /** What was read before, and the rest as it arrives. */
    send(upstream: ClientRequest): void {
      if (!hasBody) {
        upstream.end()
        return
      }
      for (const piece of kept ?? []) upstream.write(piece)
      if (request.readableEnded) {
        upstream.end()
        return
      }
      if (!isBegun) request.on('data', keep)
      isBegun = true
      request.pipe(upstream)
    },
    /** It takes no more. */
    release(upstream: ClientRequest): void {
      request.unpipe(upstream)
    },
  }
}

/** A length goes on as it was read; Node frames what has none in pieces, also where there is no body. */
function headersOf(
  method = 'GET',
  encoding: string | undefined,
  length: string | undefined,
): readonly string[] {
  if (encoding !== undefined) return ['Transfer-Encoding', 'chunked']
  const isBare = length === undefined && (method === 'GET' || method === 'HEAD')
  return isBare ? [] : ['Content-Length', length ?? '0']
}
