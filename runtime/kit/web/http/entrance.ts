/** Accepts requests, those of a connection in turn: refuses targets that form no URL, outlives one request's error, and closes in peace. */
import { createHmac, hkdfSync, randomBytes, timingSafeEqual } from 'node:crypto'
import { IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http'
import { BlockList, isIP, type Socket } from 'node:net'
import type { H3, H3Event } from 'h3'
import { NodeRequest, sendNodeResponse } from 'srvx/node'
import { after, type MaybePromise, recover } from '#kit/foundation/maybe-promise.ts'
import { renderError } from '#kit/foundation/fault.ts'
import {
  parseHostHeader,
  parseTarget,
  PLAIN_TARGET,
  type TargetRefusal,
} from '#kit/net/rules/host-header.ts'
import { type ByteStream, NOSNIFF, readWhole } from '../answers/answers.ts'
import type { LogSink, Peer, PeerSettings } from '../answers/caller.ts'
import { refuse } from '../answers/faults.ts'

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

  function serve(request: IncomingMessage, response: ServerResponse): MaybePromise<void> {
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
function send(response: ServerResponse, answered: Response): MaybePromise<void> {
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
  if (!PLAIN_TARGET.test(request.url ?? '')) {
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

/** Hops that are looked at; the rest of a header that long is made up. */
const MAX_HOPS = 32

const NO_SETTINGS: PeerSettings = { publicUrl: null, allowedHosts: [], trustedProxies: [] }

/** What was found for a `Host` header: nearly always that of the request before. */
type Door = Omit<Peer, 'ip'>

/**
 * It throws a 400 for a `Host` that cannot be one or is not ours. It does not use h3's
 * `getRequestIP` and `getRequestHost`: they believe the forwarding headers of anybody.
 * `readPassed`: for the leader of a fleet, to which other servers pass requests on; null: there are
 * none. It throws a 421 for what is to be passed on anew, if by anybody.
 */
export function createPeers(
  settings = () => NO_SETTINGS,
  readPassed: PassedReader | null = null,
): (event: H3Event) => Peer {
  let [known, rules] = [settings(), createRules(settings())]
  let [lastSaid, lastDoor]: [string, Door | null] = ['', null]

  function refresh(): void {
    const now = settings()
    const isSame =
      now.publicUrl === known.publicUrl &&
      now.allowedHosts === known.allowedHosts &&
      now.trustedProxies === known.trustedProxies
    if (!isSame) [known, rules, lastDoor] = [now, createRules(now), null]
  }

  function doorOf(said: string, isSecure: boolean): Door {
    if (lastDoor?.isSecure === isSecure && said === lastSaid) return lastDoor
    lastDoor = openDoor(said, isSecure, rules)
    lastSaid = said
    return lastDoor
  }

  return (event) => {
    refresh()
    const said = event.req.headers.get('host') ?? event.url.host
    const { direct, isTls } = readLine(event, readPassed)
    if (!rules.isTrusted(direct)) return { ip: direct || null, ...doorOf(said, isTls) }
    const door = doorOf(said, isTls || forwardedProto(event) === 'https')
    const forwarded = event.req.headers.get('x-forwarded-host')
    return {
      ...door,
      ip: originOf(event, direct, rules.isTrusted),
      ownHosts: forwarded === null ? door.ownHosts : [...door.ownHosts, forwarded],
    }
  }
}

function readLine(event: H3Event, readPassed: PassedReader | null) {
  const request = readPassed === null ? null : rawRequestOf(event)
  const passed = request === null ? null : (readPassed?.(request) ?? null)
  if (passed === 'stale')
    throw refuse(NOT_LEADING, 'this was passed on before, or to another leader')
  if (passed !== null) return { direct: plainAddress(passed.ip), isTls: passed.isSecure }
  const isTls = event.url.protocol === 'https:'
  return { direct: plainAddress(event.req.ip ?? ''), isTls }
}

/** Null: it came by no socket. HTTP/2 is not spoken here. */
export function rawRequestOf({ req }: H3Event): IncomingMessage | null {
  const request = req.runtime?.node?.req
  return request instanceof IncomingMessage ? request : null
}

type Rules = ReturnType<typeof createRules>

function createRules({ publicUrl, allowedHosts, trustedProxies }: PeerSettings) {
  const list = listOf(trustedProxies)
  return {
    publicUrl,
    own: publicUrl === null ? null : new URL(publicUrl),
    allowed: allowedHosts.map((name) => name.toLowerCase().replace(/\.$/, '')),
    isTrusted: (ip: string): boolean =>
      trustedProxies.length > 0 &&
      isIP(ip) !== 0 &&
      list.check(ip, isIP(ip) === 6 ? 'ipv6' : 'ipv4'),
  }
}

function openDoor(said: string, isSecure: boolean, { publicUrl, own, allowed }: Rules): Door {
  const parsed = parseHostHeader(said)
  if (!parsed.ok) throw refuse(400, 'the Host header is not a host name or address')
  const host = parsed.value
  const name = host.replace(/\.?(?::\d+)?$/, '')
  if (allowed.length > 0 && own?.hostname !== name && !allowed.includes(name)) {
    throw refuse(400, 'this server does not answer to that name', {
      hint: 'Add the name to [server] allowed_hosts, or set [server] public_url.',
    })
  }
  return {
    isSecure,
    host,
    baseUrl: publicUrl ?? `${isSecure ? 'https' : 'http'}://${host}`,
    ownHosts: own === null ? [host] : [host, own.host],
  }
}

/** From the right: each trusted proxy vouches for the address before it. */
function originOf(event: H3Event, direct: string, isTrusted: (ip: string) => boolean): string {
  const hops = forwardedFor(event).slice(-MAX_HOPS)
  let ip = direct
  while (isTrusted(ip)) {
    const before = plainAddress(hops.pop() ?? '')
    if (isIP(before) === 0) break
    ip = before
  }
  return ip
}

/** `Forwarded` (RFC 7239) where it is given, else `X-Forwarded-For`. */
function forwardedFor(event: H3Event): string[] {
  const standard = event.req.headers.get('forwarded')
  if (standard === null) return (event.req.headers.get('x-forwarded-for') ?? '').split(',')
  return standard.split(',').map((hop) => /(?:^|;)\s*for=("?)([^;"]*)\1/i.exec(hop)?.[2] ?? '')
}

function forwardedProto(event: H3Event): string {
  const standard = event.req.headers.get('forwarded')?.split(',').at(-1) ?? ''
  const proto =
    /(?:^|;)\s*proto="?([a-z]+)/i.exec(standard)?.[1] ??
    event.req.headers.get('x-forwarded-proto')?.split(',').at(-1) ??
    ''
  return proto.trim().toLowerCase()
}

/** Takes brackets, port and the IPv6 form of an IPv4 address away. */
export function plainAddress(text: string): string {
  if (isIP(text) === 4) return text
  const address = text.trim().replace(/^\[(.*)\](?::\d+)?$/, '$1')
  const bare = /^\d+\.\d+\.\d+\.\d+:\d+$/.test(address) ? address.replace(/:\d+$/, '') : address
  return bare.replace(/^::ffff:(?=\d+\.\d+\.\d+\.\d+$)/i, '')
}

/** Settings were checked when they were read: what is no range here is left out. */
function listOf(ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', bits] = range.split('/')
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4'
    if (isIP(address) === 0) continue
    if (bits === undefined) list.addAddress(address, family)
    else list.addSubnet(address, Number(bits), family)
  }
  return list
}

// The client of a request that came by way of another server: who it is, and the proof that a server of ours says so, now.

/** It is believed only with its seal; anybody may send the header. */
export const CLIENT_HEADER = 'flasher-client'

/** Said to a server that took this one for the leader, or passed on what is no longer its leader's to believe. */
export const NOT_LEADING = 421

export interface PassedClient {
  /** Empty: that server did not know it. */
  readonly ip: string
  /** Whether it spoke TLS to that server. */
  readonly isSecure: boolean
}

type SealedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers'>

export type ClientSeal = ReturnType<typeof createClientSeal>

interface SealKeys {
  /** The text of `[database] key`; empty: none is set. */
  readonly key: string
  /** The random name of the database, which its servers know, and who reads a copy of their state. */
  readonly cluster: string
}

/** Holds for one method, address and `Host`, one leadership, and once (`createPassedReader`). */
export function createClientSeal({ key, cluster }: SealKeys) {
  const derived =
    key === '' ? cluster : Buffer.from(hkdfSync('sha256', key, cluster, 'flasher: clients', 32))
  const sender = randomBytes(12).toString('base64url')
  let number = 0
  const sign = ({ method = '', url = '', headers }: SealedRequest, said: string) =>
    createHmac('sha256', derived)
      .update(`forwarded\n${method} ${url}\n${headers.host ?? ''}\n${said}`)
      .digest()

  return {
    /** `term`: of the leader that the request goes to. Each seal is made for one try. */
    seal(request: SealedRequest, { ip, isSecure }: PassedClient, term: string): string {
      number += 1
      const said = `${ip};${isSecure ? 'https' : 'http'};${term};${sender};${number}`
      return `${said};${sign(request, said).toString('base64url')}`
    },
    /** Null: it came from the client itself, or from nobody that has the key. Whether it is new is not looked at. */
    read(request: SealedRequest): Sealed | null {
      const header = request.headers[CLIENT_HEADER]
      if (typeof header !== 'string' || header.length > MAX_CHARACTERS) return null
      const [, said, given] = FORM.exec(header) ?? []
      if (said === undefined || given === undefined) return null
      const isOurs = timingSafeEqual(Buffer.from(given, 'base64url'), sign(request, said))
      return isOurs ? parseSaid(said) : null
    },
  }
}

interface Sealed {
  readonly client: PassedClient
  readonly term: string
  /** Random for each start of a server, which counts its seals. */
  readonly sender: string
  readonly number: number
}

const MAX_CHARACTERS = 200
const FORM = /^([\d.a-fA-F:%\w]*;https?;\w{1,20};[\w-]{16};\d{1,15});([\w-]{43})$/

/** What our own server said, in the form of `FORM`. */
function parseSaid(said: string): Sealed {
  const [ip = '', scheme = '', term = '', sender = '', number = ''] = said.split(';')
  return { client: { ip, isSecure: scheme === 'https' }, term, sender, number: Number(number) }
}

/** `stale`: a server of ours sealed it, for another leader, or it was here before. */
export type PassedReader = (request: SealedRequest) => PassedClient | 'stale' | null

/** Each seal is read once. */
export function createPassedReader(seal: ClientSeal, term: string): PassedReader {
  const spend = createSpentNumbers()
  return (request) => {
    const sealed = seal.read(request)
    if (sealed === null) return null
    return sealed.term === term && spend(sealed.sender, sealed.number) ? sealed.client : 'stale'
  }
}

/** More than a server has under way; what is older than so many counts as used. */
const NUMBERS = 4096
/** Each start of another server is one, with 32 KiB. */
const SENDERS = 256

/** `number`: a whole one above 0. False: it was used, or is too old to tell. */
export function createSpentNumbers(): (sender: string, number: number) => boolean {
  /** The one that was heard of last is the last one. */
  const senders = new Map<string, ReturnType<typeof createNumbers>>()
  return (sender, number) => {
    const numbers = senders.get(sender) ?? createNumbers()
    senders.delete(sender)
    senders.set(sender, numbers)
    const [oldest] = senders.keys()
    if (senders.size > SENDERS && oldest !== undefined) senders.delete(oldest)
    return numbers(number)
  }
}

function createNumbers() {
  const last = new Float64Array(NUMBERS)
  let newest = 0
  return (number: number): boolean => {
    const place = number % NUMBERS
    if (number <= newest - NUMBERS || last[place] === number) return false
    last[place] = number
    newest = Math.max(newest, number)
    return true
  }
}

export interface ClosableServer extends Pick<Server, 'closeAllConnections'> {
  on(
    event: 'request',
    listener: (request: unknown, response: Pick<ServerResponse, 'on'>) => void,
  ): unknown
  close(ended: () => void): unknown
}

/**
 * Call it before the first request. Node's own `closeIdleConnections` leaves those that have not
 * asked for anything yet, and browsers hold such connections.
 */
export function watchRequests(server: ClosableServer) {
  let underWay = 0
  let isEnding = false
  const cutIdle = () => {
    if (isEnding && underWay === 0) server.closeAllConnections()
  }
  const leave = () => {
    underWay -= 1
    cutIdle()
  }
  server.on('request', (_request, response) => {
    underWay += 1
    response.on('close', leave)
  })
  return {
    /** Resolves once nothing is open any more. Answers that take longer than `graceMs` are cut off. */
    async end(graceMs: number): Promise<void> {
      const { promise: closed, resolve } = Promise.withResolvers<void>()
      server.close(resolve)
      isEnding = true
      cutIdle()
      const cutting = setTimeout(() => server.closeAllConnections(), graceMs)
      await closed
      clearTimeout(cutting)
    },
  }
}
