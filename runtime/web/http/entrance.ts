/** Accepts requests: refuses targets that form no URL, and keeps one request's error from ending the process. */
import type { H3 } from 'h3'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import { NodeRequest, sendNodeResponse } from 'srvx/node'
import { after, recover, type Eventual } from '../../core/foundation/eventual.ts'
import { renderError } from '../../core/foundation/fault.ts'
import { parseHost } from '../../core/net/host-header.ts'
import { isPlainTarget, parseTarget, type TargetRefusal } from '../../core/net/request-target.ts'
import type { Parts } from './answers.ts'
import { createTurns } from './turns.ts'
import { NOSNIFF } from './headers.ts'
import type { Log } from './caller.ts'
import { plainAddress } from './peer.ts'
import { readWhole } from './response.ts'

const REFUSALS = {
  'dot-segment': 'the path has a segment . or ..',
  backslash: 'the path has a backslash',
  'not-a-target': 'the request names neither a path nor an HTTP address',
} as const satisfies Record<TargetRefusal, string>

/** What a listening socket hands its requests to. */
export type Entrance = RequestListener

/**
 * The adapter makes a URL of target and `Host` in a constructor, before any handler of ours: it throws
 * where there is none, and silently walks up the path where segments say so.
 */
export function createEntrance(app: H3, log: Pick<Log, 'error'>): Entrance {
  const isHost = createHostCheck()

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
    if (!isHost(request.headers.host ?? '')) {
      return answer(response, 400, 'the Host header is not a host name or address')
    }
    void serve(request, response)
  }

  return createTurns(accept)
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
async function sendParts(response: ServerResponse, parts: Parts): Promise<void> {
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
async function close(parts: Parts): Promise<void> {
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

/** Nearly always the one of the request before. */
function createHostCheck(): (said: string) => boolean {
  let good = ''
  return (said) => {
    if (said === good) return said !== ''
    if (!parseHost(said).ok) return false
    good = said
    return true
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
