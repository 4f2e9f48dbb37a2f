/** Performs one HTTP(S) exchange: proxies, own authorities, redirects, and a limit on every wait. */
import * as http from 'node:http'
import * as https from 'node:https'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { type HttpTarget, isRedirect, nextTarget, REDIRECT_LIMIT } from './rules/image-location.ts'
import { codedError, MISDIRECTED, STALLED } from './rules/network-failure.ts'
import { isDirectHost, decideProxies, type ProxySettings } from './rules/direct-host.ts'
import type { Environment } from '#kit/host/shell.ts'
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { getCACertificates } from 'node:tls'

export interface HttpRequest {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /**
   * This gets the number of the body's bytes that were handed on so far. While they move, the
   * request does not count as stalled, however long all of it takes.
   */
  readonly onSent?: (bytes: number) => void
  /** The longest wait for the answer to this request, in milliseconds; absent: the client's. */
  readonly stallMs?: number
  /** `answer`: a redirect is the answer, and no other address is asked. */
  readonly redirects?: 'follow' | 'answer'
  readonly signal?: AbortSignal
}

export interface HttpAnswer {
  readonly status: number
  readonly headers: http.IncomingHttpHeaders
  /** Where the redirects ended. */
  readonly target: HttpTarget
  /** The bytes as they are on the wire, never decoded. Each wait for more is bounded. */
  body(): AsyncGenerator<Buffer, void, undefined>
  /** Ends it without its body. */
  drop(): void
}

export type HttpClient = ReturnType<typeof createHttpClient>

interface HttpClientOptions {
  readonly env: Environment
  /** Ends everything under way, at once. */
  readonly signal: AbortSignal
  /** The longest wait for a next byte. */
  readonly stallMs: number
}

/** Connections are kept and used again until it is given back. */
export function createHttpClient({ env, signal, stallMs }: HttpClientOptions) {
  const agents = createAgents(env)

  async function exchange(target: HttpTarget, request: HttpRequest) {
    const { method, headers, body } = request
    const ending = request.signal === undefined ? signal : AbortSignal.any([signal, request.signal])
    const { agent, start, proxy } = await agents.of(target.url)
    const secret = target.authorization === null ? {} : { authorization: target.authorization }
    return new Promise<http.IncomingMessage>((resolve, reject) => {
      const started = start(target.url, {
        method,
        agent,
        signal: ending,
        headers: { 'user-agent': 'flasher', 'accept-encoding': 'identity', ...headers, ...secret },
      })
      const waitMs = request.stallMs ?? stallMs
      const timer = setTimeout(() => started.destroy(stalled(waitMs)), waitMs)
      let isSettled = false
      const settle = () => {
        isSettled = true
        clearTimeout(timer)
      }
      started.on('response', (response) => {
        settle()
        // The reader of the body gets it; without a reader it matters to nobody.
        response.on('error', () => {})
        resolve(response)
      })
      // Stays on: bytes after the end of an answer are an error, too, which no longer matters.
      started.on('error', (error) => {
        settle()
        reject(proxy === null ? error : Object.assign(error, { proxy }))
      })
      // An end without answer and error, as after a switch to another protocol.
      started.on('close', () => {
        settle()
        reject(codedError('ECONNRESET', 'no answer'))
      })
      if (request.onSent === undefined || !(body instanceof Buffer)) started.end(body)
      else {
        const { onSent } = request
        sendPieces(started, body, (sent) => {
          if (!isSettled) timer.refresh()
          onSent(sent)
        })
      }
    })
  }

  /** Follows redirects by default. Throws Node's errors, and those of rules/network-failure.ts. */
  async function fetch(first: HttpTarget, request: HttpRequest): Promise<HttpAnswer> {
    let target = first
    for (let hops = 0; hops <= REDIRECT_LIMIT; hops += 1) {
      const response = await exchange(target, request)
      const { statusCode: status = 0, headers } = response
      if (!isRedirect(status) || request.redirects === 'answer') {
        return {
          status,
          headers,
          target,
          body: () => readBody(response, stallMs),
          drop: () => drop(response, request.method),
        }
      }
      drop(response, request.method)
      const next = nextTarget(target, headers.location)
      if (!next.ok) throw misdirected(next.refusal)
      target = next.value
    }
    throw misdirected(`more than ${REDIRECT_LIMIT} redirects`)
  }

  return { fetch, [Symbol.asyncDispose]: agents.close }
}

const PIECE_BYTES = 65_536

/** Each piece follows when the one before it is out, so that a slow link shows how far it is. */
function sendPieces(started: http.ClientRequest, body: Buffer, onSent: (bytes: number) => void) {
  // Without a length, what is written in pieces would be sent with an encoding of its own.
  started.setHeader('content-length', body.length)
  function sendFrom(at: number) {
    if (at >= body.length) {
      started.end()
      return
    }
    const piece = body.subarray(at, at + PIECE_BYTES)
    started.write(piece, (error) => {
      // The request's own `error` says why.
      if (error !== null && error !== undefined) return
      onSent(at + piece.length)
      sendFrom(at + piece.length)
    })
  }
  sendFrom(0)
}

/** The clock runs only while we wait for the server, never while the reader takes its time. */
async function* readBody(response: http.IncomingMessage, stallMs: number) {
  let isWaiting = true
  const timer = setTimeout(() => {
    if (isWaiting) response.destroy(stalled(stallMs))
  }, stallMs)
  try {
    for await (const chunk of response) {
      isWaiting = false
      if (chunk instanceof Buffer) yield chunk
      isWaiting = true
      timer.refresh()
    }
  } finally {
    clearTimeout(timer)
  }
}

const SMALL_BODY = 65_536

/** A short rest is read, so that the connection can be used again; a long one closes it. */
function drop(response: http.IncomingMessage, method: HttpRequest['method']): void {
  const length = Number(response.headers['content-length'])
  if (method === 'HEAD' || length <= SMALL_BODY) response.resume()
  else response.destroy()
}

/**
 * Agents that go through the proxies of the environment, and ones that do not, each made at its first
 * request: Node's own do the rest. `fetch` and undici decode bodies or know no networks in `no_proxy`.
 */
function createAgents(env: Environment) {
  const agents = new Map<string, Promise<http.Agent>>()
  async function create(isSecure: boolean, proxyEnv: ProxySettings): Promise<http.Agent> {
    const options = { keepAlive: true, proxyEnv }
    if (!isSecure) return new http.Agent(options)
    const ca = await readAuthorities(env)
    return new https.Agent({ ...options, ...(ca === undefined ? {} : { ca }) })
  }
  return {
    async of(url: string) {
      const { no_proxy: list = '', ...proxies } = proxiesOf(env)
      const isSecure = url.startsWith('https:')
      const isDirect = isDirectHost(url, list)
      const name = `${isSecure} ${isDirect}`
      const agent = agents.get(name) ?? create(isSecure, isDirect ? {} : proxies)
      agents.set(name, agent)
      const named = proxies[isSecure ? 'https_proxy' : 'http_proxy'] ?? ''
      return {
        agent: await agent,
        start: isSecure ? https.request : http.request,
        /** Host and port; null: none stands in between. */
        proxy: isDirect ? null : (URL.parse(named)?.host ?? null),
      }
    },
    async close() {
      for (const made of await Promise.allSettled(agents.values())) {
        if (made.status === 'fulfilled') made.value.destroy()
      }
    },
  }
}

function proxiesOf(env: Environment) {
  const proxies = decideProxies(env)
  if (proxies.ok) return proxies.value
  throw new Fault('misuse', `${proxies.refusal} is not the address of an http proxy`, {
    hint: `Unset ${proxies.refusal} or give it as http://host:port.`,
  })
}

const stalled = (ms: number) => codedError(STALLED, `no data for ${ms / 1000} s`)
const misdirected = (words: string) => codedError(MISDIRECTED, words)

/** Reads the trusted TLS authorities: Node's own, and those of FLASHER_CA_FILE. */
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

/**
 * Returns PEM texts for a TLS agent's `ca`; undefined stands for Node's own (which know
 * NODE_EXTRA_CA_CERTS). Rejects with a Fault where FLASHER_CA_FILE cannot be read or used.
 */
export async function readAuthorities(env: Environment): Promise<string[] | undefined> {
  const path = env['FLASHER_CA_FILE'] ?? ''
  if (path === '') return undefined
  const bundle = await readFile(path, 'latin1').catch((cause: unknown) => {
    const words = `FLASHER_CA_FILE cannot be read: ${renderError(cause)}`
    throw new Fault('input-missing', words, { cause })
  })
  const added = bundle.match(CERTIFICATE) ?? []
  if (added.length === 0) throw unusable(path, 'it holds no PEM certificate')
  for (const pem of added) checkCertificate(path, pem)
  return [...getCACertificates('default'), ...added]
}

function checkCertificate(path: string, pem: string): void {
  try {
    void new X509Certificate(pem)
  } catch (cause) {
    throw unusable(path, `a certificate in it is damaged (${renderError(cause)})`)
  }
}

const unusable = (path: string, why: string) =>
  new Fault('input-invalid', `FLASHER_CA_FILE cannot be used: ${path}: ${why}`)
