/** Passes requests on to the server that leads, and holds them for a moment where there is none. */
import * as http from 'node:http'
import * as https from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { LogSink } from '../answers/caller.ts'
import { CLIENT_HEADER, NOT_LEADING, type ClientSeal, type PassedClient } from './client-seal.ts'
import { startExchange, type ForwardExchange } from './exchange.ts'
import { createTarget, type ForwardTarget } from './forward-target.ts'
import { createKeptBody } from './kept-body.ts'
import { createLiveness, SILENT_MS } from './liveness.ts'
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
  let [told, ticks]: [string, NodeJS.Timeout | undefined] = ['', undefined]

  /** Each leader and reason is named once. */
  function tell({ url }: ForwardTarget, error: Error): void {
    const words = describeUnreachable(url, error)
    if (words !== told) log.warn(words)
    told = words
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
      if (loss === null) told = ''
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
