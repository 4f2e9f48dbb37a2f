/** One request on its way to another server and its answer on the way back, both streamed; whoever leaves ends it for both. */
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { NOT_LEADING } from './client-seal.ts'
import type { KeptBody } from './kept-body.ts'
import { listPassedHeaders, type Loss } from './rules/forwarding.ts'

const CONNECT_MS = 3000

interface ExchangeDependencies {
  readonly upstream: ClientRequest
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly body: KeptBody
  /** The answer must begin within so many milliseconds; null: it takes what it takes. */
  readonly patience: number | null
  onUnreachable(error: Error): void
}

export type ForwardExchange = ReturnType<typeof startExchange>

export function startExchange(parts: ExchangeDependencies) {
  const { upstream, request, response, body, patience, onUnreachable } = parts
  const { promise, resolve } = Promise.withResolvers<Loss | null>()
  const ended = Promise.withResolvers<void>()
  const connection = watchConnection(upstream)
  const limit = patience === null ? undefined : setTimeout(() => upstream.destroy(), patience)
  let [isAnswered, isStream] = [false, false]

  function abandon(): void {
    upstream.destroy()
    // Nobody takes a part for the whole.
    if (isAnswered) response.destroy()
  }
  const leave = () => {
    if (!response.writableFinished) abandon()
  }
  response.once('close', leave)
  upstream.on('close', () => {
    clearTimeout(limit)
    response.off('close', leave)
    body.release(upstream)
    if (!isAnswered) resolve(connection.isMade() ? 'lost' : 'not-sent')
    ended.resolve()
  })
  upstream.on('error', (error) => {
    if (!isAnswered && !connection.isMade()) onUnreachable(error)
  })
  upstream.on('response', (answer) => {
    clearTimeout(limit)
    if (answer.statusCode === NOT_LEADING) {
      answer.resume()
      resolve('not-leading')
      // It waits for the rest of a body that another server gets; else the connection is used again.
      body.release(upstream)
      if (!upstream.writableEnded) upstream.destroy()
      return
    }
    isAnswered = true
    isStream = answer.headers['content-type']?.startsWith('text/event-stream') === true
    sendBack(answer, request, response)
    resolve(null)
  })
  body.send(upstream)
  return {
    /** Null: it was answered. */
    outcome: promise,
    ended: ended.promise,
    abandon,
    /** What went over its connection so far. */
    bytes(): number {
      const { bytesRead = 0, bytesWritten = 0 } = upstream.socket ?? {}
      return bytesRead + bytesWritten
    },
    /** Whether its answer is one that would go on forever. */
    isStream: () => isStream,
  }
}

/** Tells whether anything of a request can have reached the other server. */
function watchConnection(upstream: ClientRequest) {
  let isMade = false
  upstream.on('socket', (socket) => {
    if (!socket.connecting) {
      isMade = true
      return
    }
    const slow = () => socket.destroy(new Error('no connection within 3 s'))
    const timer = setTimeout(slow, CONNECT_MS)
    // A handshake of TLS that fails has told the other side nothing.
    socket.once('encrypted' in socket ? 'secureConnect' : 'connect', () => {
      isMade = true
      clearTimeout(timer)
    })
    socket.once('close', () => clearTimeout(timer))
  })
  return { isMade: () => isMade }
}

function sendBack(
  answer: IncomingMessage,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const { statusCode = 502, statusMessage = '', rawHeaders, headers } = answer
  // It wants no more of the body.
  if (headers.connection === 'close' && !request.complete) response.shouldKeepAlive = false
  response.writeHead(statusCode, statusMessage, listPassedHeaders(rawHeaders))
  // A live page's answer may say nothing for a while.
  response.flushHeaders()
  answer.on('error', () => response.destroy())
  answer.pipe(response)
}
