/** HTTP with one BMC or hook: to the checked address alone, without proxies, its certificate pinned. */
import * as http from 'node:http'
import * as net from 'node:net'
import * as tls from 'node:tls'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { askDocument, type DocumentAnswer } from '#kit/net/json-client.ts'
import type { HttpAnswer, HttpRequest } from '#kit/net/http-client.ts'
import type { HttpTarget } from '#kit/net/rules/image-location.ts'
import { codedError, describeFailure } from '#kit/net/rules/network-failure.ts'
import type { FindAddress } from './driver.ts'
import { BY_AUTHORITY } from './rules/bmc.ts'
import { lasting, passing, quote, type PowerTrouble } from './rules/power.ts'

export interface BmcHttpDependencies {
  readonly findAddress: FindAddress
  /** SHA-256 in hexadecimal, or `BY_AUTHORITY`; null: none seen yet. */
  certificate(): string | null
  pin(certificate: string): Promise<void>
  /** Milliseconds for a request with its connection. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface BmcRequest {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: object
}

export type BmcHttp = ReturnType<typeof createBmcHttp>

const MAX_BYTES = 2 ** 20
const CHANGED = 'ERR_BMC_CERTIFICATE'
const REFUSED = 'ERR_BMC_ADDRESS'

export function createBmcHttp(base: URL, given: BmcHttpDependencies) {
  const { timeoutMs, signal } = given
  const isSecure = base.protocol === 'https:'
  const port = Number(base.port || (isSecure ? 443 : 80))
  const host = base.hostname.replaceAll(/[[\]]/g, '')
  let trouble: PowerTrouble | null = null

  async function connect(): Promise<net.Socket> {
    const found = await given.findAddress({ host, port })
    if (!found.ok) {
      trouble = found.refusal
      throw codedError(REFUSED, found.refusal.seen)
    }
    const socket = await open(net.connect({ host: found.value, port }), 'connect', signal)
    if (!isSecure) return socket
    const servername = net.isIP(host) === 0 ? host : ''
    // The certificate is for the host; the address was decided above.
    const secure = tls.connect({
      ...TLS,
      host,
      socket,
      ...(servername === '' ? {} : { servername }),
    })
    await open(secure, 'secureConnect', signal)
    // The password is sent only after this check.
    await check(secure)
    return secure
  }

  async function check(socket: tls.TLSSocket): Promise<void> {
    const pinned = given.certificate()
    const shown = readFingerprint(socket)
    // A pinned certificate stays pinned, even if an authority vouches for it by now.
    const seen = socket.authorized && shown !== pinned ? BY_AUTHORITY : shown
    if (seen !== null && pinned === null) return given.pin(seen)
    if (seen !== null && pinned === seen) return
    socket.destroy()
    if (seen === null) throw codedError('ECONNRESET', 'no certificate')
    const what = pinned === BY_AUTHORITY ? 'no longer trusted' : 'a different one'
    trouble = lasting('certificate', `its certificate is ${what}: ${shown}`, TRUST)
    throw codedError(CHANGED, trouble.seen)
  }

  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
  agent.createConnection = (_options, callback) => {
    connect().then(
      (socket) => callback?.(null, socket),
      // The type wants a stream beside the error; Node ignores it.
      (error: Error) => callback?.(error, new net.Socket()),
    )
    return undefined
  }

  const fetch = (target: HttpTarget, request: HttpRequest): Promise<HttpAnswer> =>
    exchange(agent, target, request, signal)

  return {
    /** Once; redirects are answers. */
    async ask(url: URL, request: BmcRequest): Promise<Result<DocumentAnswer, PowerTrouble>> {
      trouble = null
      const { method, headers = {}, body } = request
      const json = body === undefined ? {} : { 'content-type': 'application/json' }
      const target = { url: url.href, authorization: null }
      const options = { method, headers: { ...json, ...headers }, body, signal }
      const limits = { maxBytes: MAX_BYTES, timeoutMs, redirects: 'answer' } as const
      try {
        return accept(await askDocument({ fetch }, target, { ...options, ...limits }))
      } catch (thrown) {
        const failure = describeFailure(thrown)
        if (trouble !== null) return refuse(trouble)
        if (failure === null) throw thrown
        return refuse(passing('unreachable', quote(failure.reason), CHECK))
      }
    },
    close: () => agent.destroy(),
  }
}

function readFingerprint(socket: tls.TLSSocket): string | null {
  const shown = socket.getPeerCertificate()?.fingerprint256
  return shown === undefined ? null : shown.replaceAll(':', '').toLowerCase()
}

/** Old BMCs speak old ciphers; the pin identifies them. */
const TLS = {
  rejectUnauthorized: false,
  minVersion: 'TLSv1.2',
  ciphers: 'DEFAULT:@SECLEVEL=0',
} as const

function open<S extends net.Socket>(socket: S, event: string, signal: AbortSignal): Promise<S> {
  return new Promise((resolve, reject) => {
    const leave = () => socket.destroy(codedError('ECONNABORTED', 'ended'))
    signal.addEventListener('abort', leave, { once: true })
    const settle = () => signal.removeEventListener('abort', leave)
    socket.setTimeout(CONNECT_MS, () => socket.destroy(codedError('ETIMEDOUT', 'no connection')))
    socket.once(event, () => {
      settle()
      socket.setTimeout(0)
      resolve(socket)
    })
    socket.once('error', (error) => {
      settle()
      reject(error)
    })
    socket.once('close', () => reject(codedError('ECONNRESET', 'closed')))
    if (signal.aborted) leave()
  })
}

const CONNECT_MS = 10_000

function exchange(
  agent: http.Agent,
  { url }: HttpTarget,
  { method, headers, body, signal }: HttpRequest,
  ending: AbortSignal,
): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>()
  const { host, pathname, search } = new URL(url)
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  const request = http.request({
    agent,
    method,
    path: `${pathname}${search}`,
    headers: { ...headers, ...length, host, accept: 'application/json', 'user-agent': 'flasher' },
    signal: signal === undefined ? ending : AbortSignal.any([ending, signal]),
  })
  request.on('error', reject)
  request.on('close', () => reject(codedError('ECONNRESET', 'no answer')))
  request.on('response', (response) => {
    response.on('error', () => {})
    const drop = () => void response.resume()
    const { statusCode: status = 0 } = response
    const target = { url, authorization: null }
    resolve({ status, headers: response.headers, target, body: () => read(response), drop })
  })
  request.end(body)
  return promise
}

async function* read(response: http.IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of response) if (chunk instanceof Buffer) yield chunk
}

const CHECK = 'Check its address, its network and whether its BMC is on.'
const TRUST = 'If its BMC got a new certificate, forget the old one and try again.'
