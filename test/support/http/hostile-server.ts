/** A web server on loopback that behaves as badly as a test wants. */
import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: http.IncomingHttpHeaders
}

export type Answer = (
  request: http.IncomingMessage,
  response: http.ServerResponse,
  /** Counts the requests, from 0. */
  count: number,
) => void

export interface HostileServer extends AsyncDisposable {
  /** `http://127.0.0.1:port`, without a slash at its end. */
  readonly origin: string
  readonly seen: readonly Seen[]
  /** Connections that are open now. */
  openSockets(): number
  /** Waits until no connection is open; false when that took too long. */
  isQuiet(): Promise<boolean>
}

export interface Certificate {
  readonly key: string
  readonly cert: string
}

export async function startHostileServer(
  answer: Answer,
  certificate?: Certificate,
): Promise<HostileServer> {
  const seen: Seen[] = []
  const sockets = new Set<Socket>()
  const handle = (request: http.IncomingMessage, response: http.ServerResponse) => {
    const { method = '', url = '', headers } = request
    response.on('error', () => {})
    seen.push({ method, url, headers })
    answer(request, response, seen.length - 1)
  }
  const server =
    certificate === undefined
      ? http.createServer(handle)
      : https.createServer({ ...certificate }, handle)
  server.on('connection', (socket: Socket) => {
    socket.on('error', () => {})
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  const port = await listen(server)
  return {
    origin: `${certificate === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    seen,
    openSockets: () => sockets.size,
    async isQuiet() {
      for (let tries = 0; sockets.size > 0 && tries < 12_000; tries += 1) await sleep(5)
      return sockets.size === 0
    },
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

export async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return portOf(server.address())
}

function portOf(address: string | AddressInfo | null): number {
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

export interface FileBehaviour {
  /** The entity tag with its quotes; null: none is sent. */
  readonly etag?: string | null
  readonly lastModified?: string
  readonly ranges?: boolean
  /** Answers HEAD with this status, or hangs up. */
  readonly head?: number | 'hang-up'
  /** The connection ends after so many bytes of this answer's body. */
  readonly cutAfter?: number
  /** No byte follows after so many, but the connection stays. */
  readonly stallAfter?: number
  /** What `Content-Length` says more (or less) than the truth. */
  readonly lengthLie?: number
  /** What `Content-Range` says of the whole. */
  readonly totalLie?: number
  readonly headers?: Readonly<Record<string, string>>
}

/** Answers for one file like a decent server, but for what `behaviour` says. */
export function sendFile(
  bytes: Buffer,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  behaviour: FileBehaviour = {},
): void {
  const { head = 200 } = behaviour
  if (request.method === 'HEAD' && head !== 200) {
    if (head === 'hang-up') request.socket.destroy()
    else response.writeHead(head).end()
    return
  }
  const part = partOf(bytes, request, behaviour)
  const length = part.body.length + (behaviour.lengthLie ?? 0)
  response.writeHead(part.status, { 'content-length': length, ...part.headers })
  if (request.method === 'HEAD') response.end()
  else sendBody(part.body, response, behaviour)
}

function partOf(bytes: Buffer, request: http.IncomingMessage, behaviour: FileBehaviour) {
  const { totalLie = bytes.length } = behaviour
  const headers = headersOf(behaviour)
  const range = rangeOf(request, behaviour)
  if (range === null) return { status: 200, headers, body: bytes }
  const { from } = range
  const to = Math.min(range.to, bytes.length)
  if (from >= to) {
    const none = { ...headers, 'content-range': `bytes */${bytes.length}` }
    return { status: 416, headers: none, body: Buffer.alloc(0) }
  }
  const said = { ...headers, 'content-range': `bytes ${from}-${to - 1}/${totalLie}` }
  return { status: 206, headers: said, body: bytes.subarray(from, to) }
}

const headersOf = ({ etag = '"one"', lastModified, headers }: FileBehaviour) => ({
  ...(etag === null ? {} : { etag }),
  ...(lastModified === undefined ? {} : { 'last-modified': lastModified }),
  ...headers,
})

/** Null: the whole file is the answer. */
function rangeOf(request: http.IncomingMessage, behaviour: FileBehaviour) {
  const { etag = '"one"', lastModified, ranges = true } = behaviour
  const match = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '')
  const condition = request.headers['if-range']
  const isCurrent = condition === undefined || condition === etag || condition === lastModified
  if (match === null || !ranges || !isCurrent) return null
  return { from: Number(match[1]), to: Number(match[2]) + 1 }
}

function sendBody(body: Buffer, response: http.ServerResponse, behaviour: FileBehaviour): void {
  const { cutAfter, stallAfter } = behaviour
  if (cutAfter !== undefined && cutAfter < body.length) {
    // Ended, not reset, so that what was sent arrives before the cut.
    response.write(body.subarray(0, cutAfter), () => response.socket?.end())
  } else if (stallAfter !== undefined && stallAfter < body.length) {
    response.write(body.subarray(0, stallAfter))
  } else {
    response.end(body)
  }
}
