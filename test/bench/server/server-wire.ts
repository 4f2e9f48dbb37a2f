/** A lean HTTP client: one connection, one request at a time, bodies counted and not kept. */
import { connect } from 'node:net'

export interface Answer {
  readonly status: number
  /** The size of the body. */
  readonly bytes: number
  /** The time from the first byte sent to the last one received. */
  readonly milliseconds: number
}

export interface Wire {
  /** `head` and body as they go out. */
  ask(request: Buffer): Promise<Answer>
  close(): void
}

export interface WireOptions {
  readonly port: number
  /** Which of the loopback addresses it comes from. */
  readonly from?: string
  /** The size of the one buffer that is read into. */
  readonly bufferBytes?: number
}

interface Waiting {
  readonly startedAt: number
  resolve(answer: Answer): void
  reject(cause: Error): void
}

/** Connects with the first request. Answers need a `Content-Length` (or have no body). */
export function createWire({ port, from = '127.0.0.1', bufferBytes = 16_384 }: WireOptions): Wire {
  let waiting: Waiting | null = null
  let head = ''
  let [status, length, missing] = [0, 0, 0]

  const socket = connect({
    host: '127.0.0.1',
    port,
    localAddress: from,
    noDelay: true,
    onread: {
      buffer: Buffer.allocUnsafe(bufferBytes),
      callback(count, buffer) {
        if (status === 0)
          readHead(Buffer.from(buffer.buffer, buffer.byteOffset, count).toString('latin1'))
        else missing -= count
        if (status !== 0 && missing <= 0) finish()
        return true
      },
    },
  })
  const fail = (cause: Error) => {
    const asked = waiting
    waiting = null
    asked?.reject(cause)
  }
  socket.on('error', fail)
  socket.on('close', () => fail(new Error('the server closed the connection')))

  function readHead(text: string) {
    head += text
    const end = head.indexOf('\r\n\r\n')
    if (end < 0) return
    status = Number(head.slice(9, 12))
    length = Number(/\r\ncontent-length: *(\d+)/i.exec(head.slice(0, end))?.[1] ?? 0)
    missing = length - (head.length - end - 4)
    if (/\r\ntransfer-encoding:/i.test(head.slice(0, end))) fail(new Error('chunked answer'))
  }

  function finish() {
    const asked = waiting
    const answer = { status, bytes: length }
    waiting = null
    head = ''
    status = 0
    if (asked !== null) {
      asked.resolve({ ...answer, milliseconds: performance.now() - asked.startedAt })
    }
  }

  return {
    ask: (request) =>
      new Promise((resolve, reject) => {
        waiting = { startedAt: performance.now(), resolve, reject }
        socket.write(request)
      }),
    close: () => socket.destroy(),
  }
}

export interface Asked {
  readonly method?: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON text. */
  readonly body?: string
}

export function renderRequest({ method = 'GET', path, headers = {}, body }: Asked): Buffer {
  const all = {
    host: '127.0.0.1:8080',
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...(method === 'POST' && body === undefined ? { 'content-length': 0 } : {}),
    ...headers,
  }
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body ?? ''}`)
}

/** The n-th machine's MAC address. */
export const macOf = (n: number): string =>
  `02:00:${n
    .toString(16)
    .padStart(8, '0')
    .replaceAll(/..(?!$)/g, '$&:')}`
