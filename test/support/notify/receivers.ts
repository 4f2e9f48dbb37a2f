/** Receivers of notifications for tests: an HTTP server that keeps what it gets, and an SMTP server. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo, Server } from 'node:net'
import { SMTPServer } from 'smtp-server'
import * as assert from 'uvu/assert'
import type { Certificate } from '../http/hostile-server.ts'
import { waitUntil } from '../waiting.ts'

export interface ReceivedRequest {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

type Respond = (response: ServerResponse, request: ReceivedRequest, count: number) => void

const takeIt: Respond = (response) => void response.end('ok')

/** `await using`: listens on loopback; `respond` is called with each request and how many there were. */
export async function startReceiver(respond: Respond = takeIt, certificate?: Certificate) {
  const received: ReceivedRequest[] = []
  const handle = (request: IncomingMessage, response: ServerResponse) => {
    void readAll(request).then((body) => {
      const { method = '', url: path = '' } = request
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
      )
      const one = { method, path, headers, body }
      received.push(one)
      respond(response, one, received.length)
    })
  }
  const server: Server =
    certificate === undefined ? createServer(handle) : createSecureServer(certificate, handle)
  const port = await listen(server)
  const sockets = keepSockets(server)
  const scheme = certificate === undefined ? 'http' : 'https'
  return {
    received,
    port,
    url: `${scheme}://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => close(server, sockets),
  }
}

interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  readonly text: string
  readonly isSecure: boolean
  readonly user: string | null
}

interface MailOptions {
  readonly certificate?: Certificate
  /** TLS from the first byte. */
  readonly secure?: boolean
  readonly withoutStartTls?: boolean
  /** Returns what is said of an address, such as `550 unknown`; null: it is taken. */
  readonly refuse?: (address: string) => string | null
  /** Called with each mail before the server says that it has it. */
  readonly check?: () => Promise<unknown>
}

/** `await using`: an SMTP server that takes the user `flasher` with the password `sesame`. */
export async function startMailServer({
  certificate,
  secure = false,
  withoutStartTls,
  refuse = () => null,
  check = async () => undefined,
}: MailOptions = {}) {
  const mails: ReceivedMail[] = []
  const names: string[] = []
  const smtp = new SMTPServer({
    ...certificate,
    secure,
    authOptional: true,
    disabledCommands: withoutStartTls === true || certificate === undefined ? ['STARTTLS'] : [],
    onAuth({ username = '', password = '' }, _session, callback) {
      const isRight = username === 'flasher' && password === 'sesame'
      if (isRight) callback(null, { user: username })
      else callback(new Error('no such user or password'))
    },
    onRcptTo({ address }, { hostNameAppearsAs }, callback) {
      names.push(hostNameAppearsAs)
      const said = refuse(address)
      if (said === null) callback()
      else
        callback(
          Object.assign(new Error(said.slice(4)), { responseCode: Number(said.slice(0, 3)) }),
        )
    },
    onData(stream, { envelope, secure: isSecure, user }, callback) {
      const parts: Buffer[] = []
      stream.on('data', (part: Buffer) => parts.push(part))
      stream.on('end', () => {
        const { mailFrom, rcptTo } = envelope
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(parts).toString('utf8'),
          isSecure,
          user: user === undefined ? null : String(user),
        })
        void check().then(() => callback())
      })
    },
  })
  smtp.on('error', () => undefined)
  const listening = smtp.listen(0, '127.0.0.1')
  await new Promise((resolve) => listening.once('listening', resolve))
  return {
    mails,
    /** The names with which clients have introduced themselves, one for each address. */
    names,
    port: portOf(listening),
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        smtp.close(() => resolve())
      }),
  }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(Buffer.from(part))
  return Buffer.concat(parts).toString('utf8')
}

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve())
  })
  return portOf(server)
}

function portOf(server: Server): number {
  const address: AddressInfo | string | null = server.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen')
  return address.port
}

function keepSockets(server: Server) {
  const sockets = new Set<{ destroy(): unknown }>()
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  return sockets
}

const close = (server: Server, sockets: ReadonlySet<{ destroy(): unknown }>) =>
  new Promise<void>((resolve) => {
    server.close(() => resolve())
    for (const socket of sockets) socket.destroy()
  })

/** A receiver that leaves the first request without an answer (`held`), and takes all others. */
export async function startHoldingReceiver() {
  const held: ServerResponse[] = []
  const receiver = await startReceiver((response, _request, count) => {
    if (count === 1) held.push(response)
    else response.end('ok')
  })
  const { received } = receiver
  return {
    ...receiver,
    held,
    until: (count: number) =>
      waitUntil(
        async () => received.length === count,
        () => `${count} requests, not ${received.length}`,
        40_000,
      ),
  }
}

/** Raises an event: a login with a wrong password. */
export async function failLogin(url: string): Promise<void> {
  const body = new URLSearchParams({ password: 'wrong' })
  assert.is((await fetch(`${url}/ui/login`, { method: 'POST', body })).status, 401)
}
