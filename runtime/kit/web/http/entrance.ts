/** Accepts requests, those of a connection in turn: refuses targets that form no URL, outlives one request's error. */
import type { H3 } from 'h3'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { NodeRequest, sendNodeResponse } from 'srvx/node'
import { after, recover, type Eventual } from '#kit/foundation/eventual.ts'
import { renderError } from '#kit/foundation/fault.ts'
import {
  parseHostHeader,
  isPlainTarget,
  parseTarget,
  type TargetRefusal,
} from '#kit/net/rules/host-header.ts'
import type { ByteStream } from '../answers/answers.ts'
import { NOSNIFF, readWhole } from '../answers/response.ts'
import type { LogSink } from '../answers/caller.ts'
import { plainAddress } from './peer.ts'

const REFUSALS = {
  'dot-segment': 'the path has a segment . or ..',
  backslash: 'the path has a backslash',
  'not-a-target': 'the request names neither a path nor an HTTP address',
} as const satisfies Record<TargetRefusal, string>

export type Entrance = RequestListener

/** Takes a request that is not for this server's own routes, `serve` being these; false: it is for them. */
export type Diversion = (
  request: IncomingMessage,
  response: ServerResponse,
  serve: () => void,
) => boolean

/**
 * Makes the listener that checks a request before the adapter sees it. The adapter makes a URL of
 * target and `Host` in a constructor, before any handler of ours: it throws where there is none,
 * and silently walks up the path where segments say so.
 */
export function createEntrance(
  app: H3,
  log: Pick<LogSink, 'error'>,
  divert: Diversion | null = null,
): Entrance {
  const readHost = createHostReader()

  function fail(error: unknown, { method, url }: IncomingMessage, response: ServerResponse): void {
    log.error(`${method} ${url}: ${renderError(error)}`)
    if (response.headersSent) response.destroy()
    else answer(response, 500, 'Internal Server Error')
  }

  function serve(request: IncomingMessage, response: ServerResponse): Eventual<void> {
    const work = () =>
      after(app.fetch(new NodeRequest({ req: request, res: response })), (answered) =>
        send(response, answered),
      )
    return recover(work, (error) => fail(error, request, response))
  }

  function accept(request: IncomingMessage, response: ServerResponse): void {
    const refusal = normalize(request)
    if (refusal !== null) return answer(response, 400, refusal)
    const host = readHost(request.headers.host ?? '')
    if (host === null && !isHealthCheck(request)) {
      return answer(response, 400, 'the Host header is not a host name or address')
    }
    request.headers.host = host ?? ownAddress(request)
    if (divert?.(request, response, () => void serve(request, response)) === true) return
    void serve(request, response)
  }

  return createTurns(accept)
}

interface ConnectionState {
  /** The newest answer of the connection. */
  last: ServerResponse
  waiting: number
}

/** No program of a machine or a person sends more before it has read an answer. */
const MAX_WAITING = 1000

/**
 * Answers go out in the order of the requests (RFC 9112, 9.3.2), so one that came behind another gains
 * nothing by being worked on earlier.
 */
function createTurns(accept: (request: IncomingMessage, response: ServerResponse) => void) {
  const lines = new WeakMap<Socket, ConnectionState>()

  function enqueue(
    line: ConnectionState,
    request: IncomingMessage,
    response: ServerResponse,
  ): void {
    const { socket } = request
    line.waiting += 1
    if (line.waiting > MAX_WAITING) return void socket.destroy()
    line.last.once('close', () => {
      line.waiting -= 1
      // It has no socket where the connection ended before its turn.
      if (!socket.destroyed && response.socket !== null) accept(request, response)
    })
    line.last = response
  }

  const listener: RequestListener = (request, response) => {
    const { socket } = request
    const line = lines.get(socket)
    if (line === undefined) lines.set(socket, { last: response, waiting: 0 })
    // Node gives an answer its socket when those before it are out.
    else if (response.socket === null) return enqueue(line, request, response)
    else line.last = response
    accept(request, response)
  }
  return listener
}

/** In one write where it can be: the adapter's own sender takes two, and a promise. */
function send(response: ServerResponse, answered: Response): Eventual<void> {
  const whole = readWhole(answered)
  if (whole === null) return sendNodeResponse(response, answered)
  const { status, headers, body } = whole
  try {
    response.writeHead(status, headers)
  } catch (thrown) {
    if (typeof body === 'function') return close(body).then(() => Promise.reject(thrown))
    throw thrown
  }
  if (typeof body === 'function') return sendParts(response, body)
  response.end(body)
  return undefined
}

/**
 * One part is read while the one before it goes out, and no more is held than that. What goes wrong
 * ends the connection, so that nobody takes a part for the whole; a listener who left is no error.
 */
async function sendParts(response: ServerResponse, parts: ByteStream): Promise<void> {
  const left = new AbortController()
  response.once('close', () => left.abort(LEFT))
  let sent: Promise<void> = Promise.resolve()
  try {
    for await (const part of parts(left.signal)) {
      await sent
      sent = write(response, part, left.signal)
      sent.catch(() => {})
    }
    await sent
    left.signal.throwIfAborted()
    response.end()
  } catch (thrown) {
    response.destroy()
    if (thrown !== LEFT && !left.signal.aborted) throw thrown
  }
}

/** Begins and ends at once, so that what the parts are read from is closed. */
async function close(parts: ByteStream): Promise<void> {
  for await (const _ of parts(AbortSignal.abort(LEFT))) return
}

const LEFT = new Error('the listener left')

function write(response: ServerResponse, part: Uint8Array, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  if (signal.aborted) return Promise.reject(LEFT)
  const onAbort = () => reject(LEFT)
  signal.addEventListener('abort', onAbort, { once: true })
  response.write(part, (error) => {
    signal.removeEventListener('abort', onAbort)
    if (error) reject(LEFT)
    else resolve()
  })
  return promise
}

/** Normalizes target and `Host` for the routes; returns why they were refused, or null. */
function normalize(request: IncomingMessage): string | null {
  let named: string | null = null
  if (!isPlainTarget(request.url ?? '')) {
    const target = parseTarget(request.url ?? '')
    if (!target.ok) return REFUSALS[target.refusal]
    request.url = target.value.path
    named = target.value.host
  }
  // HTTP/1.0 knows no `Host`; node refuses any other request without one.
  request.headers.host ??= named ?? ownAddress(request)
  return null
}

/** Where the caller has found us. */
function ownAddress({ socket }: IncomingMessage): string {
  const address = plainAddress(socket.localAddress ?? '').replace(/%.*$/, '')
  const host = isIP(address) === 6 ? `[${address}]` : address || 'localhost'
  return `${host}:${socket.localPort ?? 80}`
}

/** Whoever watches over servers calls them by any name, or by none. */
const isHealthCheck = ({ url = '' }: IncomingMessage) => /^\/healthz(?:\?|$)/.test(url)

/** Null: none. It is nearly always the one of the request before. */
function createHostReader(): (said: string) => string | null {
  let [good, host] = ['', '']
  return (said) => {
    if (said === good) return host || null
    const parsed = parseHostHeader(said)
    if (!parsed.ok) return null
    good = said
    host = parsed.value
    return host
  }
}

function answer(response: ServerResponse, status: number, detail: string): void {
  const body = JSON.stringify({ detail })
  response
    .writeHead(status, {
      ...NOSNIFF,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    })
    .end(body)
}
