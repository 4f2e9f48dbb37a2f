/** Sends long bodies: one part is read while the one before it goes out, and no more is held than that. */
import { ServerResponse } from 'node:http'

/** Few turns between disk and network, and little memory for each reader. */
const CHUNK_BYTES = 256 * 1024

interface Body {
  readonly from: number
  /** Exclusive; null: until `read` says that there is no more. */
  readonly to: number | null
  /** Fills from `offset` on; 0 at the end. The signal says that nobody listens any more. */
  read(into: Buffer, offset: number, signal: AbortSignal): Promise<number>
}

interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: Body
}

/**
 * Ends the response only when all of it was sent; whatever goes wrong ends the connection instead, so
 * that nobody takes a part for the whole. Throws what `read` throws; a listener who left is no error.
 */
export async function sendAnswer(
  response: unknown,
  { status, headers, body }: Answer,
): Promise<void> {
  if (!(response instanceof ServerResponse)) throw new TypeError('not an answer of HTTP/1.1')
  response.writeHead(status, headers)
  const left = new AbortController()
  const onClose = () => left.abort(LEFT)
  response.once('close', onClose)
  try {
    await pump(response, body, left.signal)
    response.end()
  } catch (thrown) {
    response.destroy()
    if (thrown !== LEFT) throw thrown
  } finally {
    response.off('close', onClose)
  }
}

const LEFT = new Error('the listener left')

async function pump(response: ServerResponse, body: Body, signal: AbortSignal): Promise<void> {
  const size = body.to === null ? CHUNK_BYTES : Math.min(CHUNK_BYTES, body.to - body.from)
  const buffers = [Buffer.allocUnsafe(size), Buffer.allocUnsafe(size)] as const
  let sent: Promise<void> = Promise.resolve()
  let at = body.from
  for (let turn = 0; body.to === null || at < body.to; turn += 1) {
    const buffer = buffers[turn % 2 === 0 ? 0 : 1]
    const wanted = body.to === null ? buffer.length : Math.min(buffer.length, body.to - at)
    const bytes = await body.read(buffer.subarray(0, wanted), at, signal)
    if (signal.aborted) throw LEFT
    if (bytes === 0) {
      if (body.to === null) break
      throw new Error('the body ended early')
    }
    // The other buffer is free again once what it holds has gone out.
    await sent
    sent = write(response, buffer.subarray(0, bytes), signal)
    sent.catch(() => {})
    at += bytes
  }
  await sent
}

function write(response: ServerResponse, chunk: Buffer, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  if (signal.aborted) return Promise.reject(LEFT)
  const onAbort = () => reject(LEFT)
  signal.addEventListener('abort', onAbort, { once: true })
  response.write(chunk, (error) => {
    signal.removeEventListener('abort', onAbort)
    if (error) reject(LEFT)
    else resolve()
  })
  return promise
}
