/** Passes requests on to the server that leads, and holds them for a moment where there is none. */
import * as http from 'node:http'
import type { IncomingMessage, ServerResponse, ClientRequest } from 'node:http'
import * as https from 'node:https'
import type { LogSink } from '../answers/caller.ts'
import { CLIENT_HEADER, type ClientSeal, NOT_LEADING, type PassedClient } from './entrance.ts'
import {
  describeUnreachable,
  isOfMachine,
  isSentAgain,
  listPassedHeaders,
  type Loss,
} from './rules/forwarding.ts'

interface ForwarderDependencies {
  /** Null: it is not known yet, and nothing is passed on. */
  seal(): ClientSeal | null
  /** PEM texts of authorities; undefined: those of Node. */
  readonly authorities: string[] | undefined
  readonly log: Pick<LogSink, 'warn'>
  /** Milliseconds for which a request waits for a leader; only tests give another time. */
  readonly holdMs?: number
  /** Requests that are under way at a time; others wait. */
  readonly maxSockets?: number
}

/** A request waits for a leader for so long; clients give up after 15 s. */
const HOLD_MS = 12_000
/** The leader holds a machine's request for as long itself, while its database is away; its answer takes a moment. */
const ANSWER_MS = 1000
const RETRY_MS = 250
const ASK_MS = 2000
const TICK_MS = 1000
/** Live pages and uploads hold one each; the leader has at most 1,000 live pages. */
const MAX_SOCKETS = 2048
const MAX_IDLE_SOCKETS = 64

type PassedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders'>

/** What is done where nobody answers a request. `isDoubtful`: it may have been carried out anyway. */
type Otherwise = (isDoubtful: boolean) => void

export type Forwarder = ReturnType<typeof createForwarder>

/** Creates it; it passes nothing on before `follow` was called. */
export function createForwarder(dependencies: ForwarderDependencies) {
  const { seal, holdMs = HOLD_MS } = dependencies
  const line = createLine(dependencies)
  const exchanges = createExchanges(dependencies, line)
  const target = createTarget()
  let isStopping = false

  async function pass(job: ForwardJob, otherwise: Otherwise): Promise<void> {
    const { response } = job
    const until = performance.now() + holdMs
    while (!response.destroyed) {
      const to = target.current()
      const isOpen = to !== null && seal() !== null
      const patience = Math.max(0, until - performance.now()) + ANSWER_MS
      const loss = isOpen ? await exchanges.attempt(job, to, patience) : 'not-sent'
      if (loss === null || response.destroyed) return
      const isAgain = isSentAgain(describeJob(job), loss)
      const left = until - performance.now()
      if (!isAgain || left <= 0 || isStopping) return otherwise(!isAgain && loss === 'lost')
      await target.change(to, Math.min(RETRY_MS, left))
    }
  }

  return {
    /** Who leads from here on; null: nobody. What the former one has not answered is sent again, or lost. */
    follow(next: ForwardTarget | null): void {
      const to = next !== null && URL.canParse(next.url) ? next : null
      if (target.set(to)) exchanges.abandon((each) => each.to !== to)
    },
    current: target.current,
    /**
     * Passes a request on; `otherwise` is called where nobody answers it within 12 s, or where it is lost.
     * Resolves once it waits for no server: its answer has begun, or nobody wants one.
     */
    take(
      request: IncomingMessage,
      response: ServerResponse,
      client: PassedClient,
      otherwise: Otherwise,
    ): Promise<void> {
      const job = { request, response, client, body: createKeptBody(request) }
      return pass(job, (isDoubtful) => {
        // What is still on its way is not read.
        if (!request.complete) response.shouldKeepAlive = false
        otherwise(isDoubtful)
      })
    },
    /** Asks the leader, for its answer's status alone; null: it gave none within 2 s. */
    ask(request: PassedRequest, client: PassedClient): Promise<number | null> {
      const to = target.current()
      if (to === null || seal() === null || line.isFull()) return Promise.resolve(null)
      return readStatus(line.open(request, client, [], to), ASK_MS)
    },
    /** Answers a request that another server passed on, which is never passed on again; false: it is none. */
    refuseLoop(request: IncomingMessage, response: ServerResponse): boolean {
      if ((seal()?.read(request) ?? null) === null) return false
      response.writeHead(NOT_LEADING, { 'content-length': 0 }).end()
      return true
    },
    /** Nothing is held any more, and what would go on forever ends. */
    stop(): void {
      isStopping = true
      target.wake()
      exchanges.abandon(({ exchange }) => exchange.isStream())
    },
    end(): void {
      exchanges.abandon(() => true)
      line.end()
    },
  }
}

interface UnderWay {
  readonly exchange: ForwardExchange
  readonly to: ForwardTarget
  bytes: number
  /** When it was seen to move last (`performance.now()`). */
  movedAt: number
}

function createExchanges({ log }: ForwarderDependencies, line: ReturnType<typeof createLine>) {
  const underWay = new Set<UnderWay>()
  const liveness = createLiveness({
    ask: async (to) =>
      (await readStatus(line.open(HEALTH, NOBODY, [], to, true), SILENT_MS)) !== null,
    onSilent(to, askedAt) {
      tell(to, new Error('it gives no answer'))
      readMoves()
      abandon((each) => each.to === to && isStillSince(each, askedAt))
    },
  })
  let [logged, ticks]: [string, NodeJS.Timeout | undefined] = ['', undefined]

  /** Each leader and reason is named once. */
  function tell({ url }: ForwardTarget, error: Error): void {
    const words = describeUnreachable(url, error)
    if (words !== logged) log.warn(words)
    logged = words
  }

  function readMoves(): void {
    const now = performance.now()
    for (const each of underWay) {
      const bytes = each.exchange.bytes()
      if (bytes !== each.bytes) [each.bytes, each.movedAt] = [bytes, now]
    }
  }

  /** Who takes its time goes on; nobody waits for one that nobody hears. */
  function watch(): void {
    readMoves()
    const then = performance.now() - SILENT_MS
    for (const each of underWay) if (isStillSince(each, then)) void liveness.check(each.to)
  }

  function abandon(which: (each: UnderWay) => boolean): void {
    for (const each of underWay) if (which(each)) each.exchange.abandon()
  }

  function enter(exchange: ForwardExchange, to: ForwardTarget): void {
    const mine = { exchange, to, bytes: exchange.bytes(), movedAt: performance.now() }
    underWay.add(mine)
    ticks ??= setInterval(watch, TICK_MS)
    void exchange.ended.then(() => {
      underWay.delete(mine)
      if (underWay.size > 0) return
      clearInterval(ticks)
      ticks = undefined
    })
  }

  return {
    /** Null: it was answered. `patience`: milliseconds until a machine must have its answer. */
    async attempt(job: ForwardJob, to: ForwardTarget, patience: number): Promise<Loss | null> {
      if (line.isFull() || liveness.isSilent(to)) return 'not-sent'
      const { request, response, client, body } = job
      const isHurried = isOfMachine(request.url ?? '') && body.isSmall
      const exchange = startExchange({
        upstream: line.open(request, client, body.headers, to),
        request,
        response,
        body,
        patience: isHurried ? patience : null,
        onUnreachable: (error) => tell(to, error),
      })
      enter(exchange, to)
      const loss = await exchange.outcome
      if (loss === null) logged = ''
      return loss
    },
    abandon,
  }
}

/** Every server answers this, whether it leads or not, whatever else it does. */
const HEALTH: PassedRequest = {
  method: 'GET',
  url: '/healthz',
  headers: { host: 'localhost' },
  rawHeaders: [],
}
const NOBODY: PassedClient = { ip: '', isSecure: false }

/** Nothing of it has moved since then, neither of the request nor of its answer. */
const isStillSince = ({ movedAt }: UnderWay, then: number): boolean => movedAt <= then

interface ForwardJob {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly client: PassedClient
  readonly body: ReturnType<typeof createKeptBody>
}

const describeJob = ({ request: { method = 'GET', url = '/' }, body }: ForwardJob) => ({
  method,
  path: url,
  isWhole: body.isWhole(),
})

/** The connections to other servers, kept for the next request. */
function createLine({ seal, authorities, maxSockets = MAX_SOCKETS }: ForwarderDependencies) {
  const options = { keepAlive: true, maxFreeSockets: MAX_IDLE_SOCKETS }
  const trust = authorities === undefined ? {} : { ca: authorities }
  const plain = new http.Agent(options)
  const secure = new https.Agent({ ...options, ...trust })
  let busy = 0

  function count(upstream: http.ClientRequest): http.ClientRequest {
    busy += 1
    return upstream.once('close', () => {
      busy -= 1
    })
  }

  return {
    /** Who comes now would wait for a connection, and Node lets nobody leave that line. */
    isFull: () => busy >= maxSockets,
    /** Begins a request; `framing`: the headers of its body; `isApart`: on a connection of its own. */
    open(
      request: PassedRequest,
      client: PassedClient,
      framing: readonly string[],
      { url, term, isSelf }: ForwardTarget,
      isApart = false,
    ): http.ClientRequest {
      const { method = 'GET', url: path = '/', rawHeaders } = request
      const { protocol, hostname, port } = new URL(url)
      // Ours come first: of a request with very many headers the last ones may not be read.
      const headers = [
        'Host',
        request.headers.host ?? '',
        CLIENT_HEADER,
        seal()?.seal(request, client, term) ?? '',
        ...framing,
        ...listPassedHeaders(rawHeaders, ['host', CLIENT_HEADER, 'content-length']),
      ]
      const parts = { host: hostname.replace(/^\[|\]$/g, ''), port, method, path, headers }
      if (protocol === 'http:') return count(http.request({ ...parts, agent: !isApart && plain }))
      const checks = { ...trust, rejectUnauthorized: isSelf !== true }
      return count(https.request({ ...parts, ...checks, agent: !isApart && secure }))
    },
    end(): void {
      plain.destroy()
      secure.destroy()
    },
  }
}

/** Sends a request without a body; what it answers beside its status is not read. */
function readStatus(upstream: http.ClientRequest, patience: number): Promise<number | null> {
  const { promise, resolve } = Promise.withResolvers<number | null>()
  const limit = setTimeout(() => upstream.destroy(), patience)
  upstream.on('response', (answer) => {
    answer.resume()
    resolve(answer.statusCode ?? null)
  })
  // Null says it; `close` follows.
  upstream.on('error', () => resolve(null))
  upstream.on('close', () => {
    clearTimeout(limit)
    resolve(null)
  })
  upstream.end()
  return promise
}

// Tells a leader that takes its time from one that nobody hears any more, by asking whether it is there.

/** A leader that comes through to nobody for so long loses the lease; `/healthz` is answered at once. */
const SILENT_MS = 5000

interface LivenessDependencies {
  /** Asks a server on a connection of its own; false: it gave no answer in time. */
  ask(to: ForwardTarget): Promise<boolean>
  /** This is called when it gave none, with when it was asked (`performance.now()`). */
  onSilent(to: ForwardTarget, askedAt: number): void
}

/** Each server is asked one question at a time. */
function createLiveness({ ask, onSilent }: LivenessDependencies) {
  let asked: ForwardTarget | null = null
  let silent: ForwardTarget | null = null
  let [heard, heardAt]: [ForwardTarget | null, number] = [null, 0]

  async function check(to: ForwardTarget): Promise<void> {
    const askedAt = performance.now()
    if (asked === to || (heard === to && askedAt - heardAt < SILENT_MS)) return
    asked = to
    const isThere = await ask(to)
    // Another one may have been asked since.
    if (asked === to) asked = null
    if (isThere) {
      ;[heard, heardAt] = [to, performance.now()]
      if (silent === to) silent = null
    } else {
      silent = to
      onSilent(to, askedAt)
    }
  }

  return {
    check,
    /** Whether it gave no answer when it was asked last. It is asked again then. */
    isSilent(to: ForwardTarget): boolean {
      if (silent !== to) return false
      void check(to)
      return true
    },
  }
}

// One request on its way to another server and its answer on the way back, both streamed; whoever leaves ends it for both.

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

type ForwardExchange = ReturnType<typeof startExchange>

function startExchange(parts: ExchangeDependencies) {
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

// The server to which requests are passed on at the moment, and whoever waits for another one.

interface ForwardTarget {
  /** `http://192.0.2.7:8080`, without a slash at its end. */
  readonly url: string
  /** Another one once another server leads, or the same one again; what is sealed holds for it. */
  readonly term: string
  /** This very process: its certificate need not be for this address. */
  readonly isSelf?: boolean
}

const isSame = (one: ForwardTarget | null, other: ForwardTarget | null) =>
  one?.url === other?.url && one?.term === other?.term && one?.isSelf === other?.isSelf

function createTarget() {
  let current: ForwardTarget | null = null
  let changed = Promise.withResolvers<void>()
  function wake() {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  return {
    /** Null: nobody leads, as far as is known. */
    current: () => current,
    wake,
    /** False: it is the same one. */
    set(next: ForwardTarget | null): boolean {
      if (isSame(next, current)) return false
      current = next
      wake()
      return true
    },
    /** Resolves once it is another one than `known`, or after so many milliseconds. */
    async change(known: ForwardTarget | null, milliseconds: number): Promise<void> {
      if (current !== known) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, milliseconds)
      await Promise.race([changed.promise, promise])
      clearTimeout(timer)
    },
  }
}

// The body of a request on its way to another server: streamed, and its beginning kept, so that a small one can be sent again.

/** What machines report of a run is smaller; an inventory is repeated by the machine itself. */
const MAX_KEPT_BYTES = 16 * 1024

type KeptBody = ReturnType<typeof createKeptBody>

/** Nothing is read before `send`. */
function createKeptBody(request: IncomingMessage) {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers
  const hasBody = encoding !== undefined || (length !== undefined && length !== '0')
  let kept: Buffer[] | null = []
  let [size, isBegun] = [0, false]

  function keep(piece: Buffer): void {
    size += piece.length
    if (size > MAX_KEPT_BYTES) kept = null
    else kept?.push(piece)
  }

  return {
    /** Whether all of it would be kept. */
    isSmall: !hasBody || Number(length) <= MAX_KEPT_BYTES,
    /** What frames it on the next connection. */
    headers: headersOf(request.method, encoding, length),
    /** Whether everything that was read of it is still known. */
    isWhole: () => kept !== null,
    /** What was read before, and the rest as it arrives. */
    send(upstream: ClientRequest): void {
      if (!hasBody) {
        upstream.end()
        return
      }
      for (const piece of kept ?? []) upstream.write(piece)
      if (request.readableEnded) {
        upstream.end()
        return
      }
      if (!isBegun) request.on('data', keep)
      isBegun = true
      request.pipe(upstream)
    },
    /** It takes no more. */
    release(upstream: ClientRequest): void {
      request.unpipe(upstream)
    },
  }
}

/** A length goes on as it was read; Node frames what has none in pieces, also where there is no body. */
function headersOf(
  method = 'GET',
  encoding: string | undefined,
  length: string | undefined,
): readonly string[] {
  if (encoding !== undefined) return ['Transfer-Encoding', 'chunked']
  const isBare = length === undefined && (method === 'GET' || method === 'HEAD')
  return isBare ? [] : ['Content-Length', length ?? '0']
}
