/** Passes requests on to the server that leads, and holds them for a moment where there is none. */
import * as http from 'node:http'
import * as https from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { renderError } from '../../foundation/fault.ts'
import type { LogSink } from '../answers/caller.ts'
import { CLIENT_HEADER, NOT_LEADING, type ClientSeal, type PassedClient } from './client-seal.ts'
import { startExchange, type ForwardExchange } from './exchange.ts'
import { createTarget, type ForwardTarget } from './forward-target.ts'
import { createKeptBody } from './kept-body.ts'
import { isOfMachine, isSentAgain, listPassedHeaders, type Loss } from './rules/forwarding.ts'

interface ForwarderDependencies {
  /** Null: it is not known yet, and nothing is passed on. */
  seal(): ClientSeal | null
  /** PEM texts of authorities; undefined: those of Node. */
  readonly authorities: string[] | undefined
  readonly log: Pick<LogSink, 'warn'>
}

/** A request waits for a leader for so long; clients give up after 15 s. */
const HOLD_MS = 12_000
/** The leader holds a machine's request for as long itself, while its database is away. */
const ANSWER_MS = HOLD_MS + 1000
const RETRY_MS = 250
const ASK_MS = 2000
/** Live pages and uploads hold one each; the leader has at most 1,000 live pages. */
const MAX_SOCKETS = 2048
const MAX_IDLE_SOCKETS = 64

/** What of a request decides where it goes. */
type PassedRequest = Pick<IncomingMessage, 'method' | 'url' | 'headers' | 'rawHeaders'>

/** What is done where nobody answers a request. `isDoubtful`: it may have been carried out anyway. */
type Otherwise = (isDoubtful: boolean) => void

export type Forwarder = ReturnType<typeof createForwarder>

/** Creates it; it passes nothing on before `follow` was called. */
export function createForwarder(dependencies: ForwarderDependencies) {
  const { seal } = dependencies
  const line = createLine(dependencies)
  const exchanges = createExchanges(dependencies, line)
  const target = createTarget()
  let isStopping = false

  async function pass(job: ForwardJob, otherwise: Otherwise): Promise<void> {
    const { response } = job
    const until = performance.now() + HOLD_MS
    while (!response.destroyed) {
      const to = target.current()
      const loss = to === null || seal() === null ? 'not-sent' : await exchanges.attempt(job, to)
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
    /** Passes a request on; `otherwise` is called where nobody answers it within 12 s, or where it is lost. */
    take(
      request: IncomingMessage,
      response: ServerResponse,
      client: PassedClient,
      otherwise: Otherwise,
    ): void {
      const job = { request, response, client, body: createKeptBody(request) }
      void pass(job, (isDoubtful) => {
        // What is still on its way is not read.
        if (!request.complete) response.shouldKeepAlive = false
        otherwise(isDoubtful)
      })
    },
    /** Asks the leader, for its answer's status alone; null: it gave none within 2 s. */
    ask(request: PassedRequest, client: PassedClient): Promise<number | null> {
      const to = target.current()
      if (to === null || seal() === null) return Promise.resolve(null)
      return readStatus(line.open(request, client, [], to))
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
}

/** The requests that other servers have at the moment. */
function createExchanges({ log }: ForwarderDependencies, line: ReturnType<typeof createLine>) {
  const underWay = new Set<UnderWay>()
  let told = ''

  /** Each leader and reason is named once. */
  function tell({ url }: ForwardTarget, error: Error): void {
    const words = `the server that leads cannot be reached at ${url}: ${renderError(error)}`
    if (words !== told) log.warn(`${words}. Its database.own_url must be right for this server.`)
    told = words
  }

  return {
    /** Null: it was answered. */
    async attempt(job: ForwardJob, to: ForwardTarget): Promise<Loss | null> {
      const { request, response, client, body } = job
      const isHurried = isOfMachine(request.url ?? '') && body.isSmall
      const exchange = startExchange({
        upstream: line.open(request, client, body.headers, to),
        request,
        response,
        body,
        patience: isHurried ? ANSWER_MS : null,
        onUnreachable: (error) => tell(to, error),
      })
      const mine = { exchange, to }
      underWay.add(mine)
      void exchange.ended.then(() => underWay.delete(mine))
      const loss = await exchange.outcome
      if (loss === null) told = ''
      return loss
    },
    abandon(which: (each: UnderWay) => boolean): void {
      for (const each of underWay) if (which(each)) each.exchange.abandon()
    },
  }
}

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
function createLine({ seal, authorities }: ForwarderDependencies) {
  const options = { keepAlive: true, maxSockets: MAX_SOCKETS, maxFreeSockets: MAX_IDLE_SOCKETS }
  const plain = new http.Agent(options)
  const secure = new https.Agent({
    ...options,
    ...(authorities === undefined ? {} : { ca: authorities }),
  })
  return {
    /** Begins a request; `framing`: the headers of its body. */
    open(
      request: PassedRequest,
      client: PassedClient,
      framing: readonly string[],
      { url, term, isSelf }: ForwardTarget,
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
      return protocol === 'https:'
        ? https.request({ ...parts, agent: secure, rejectUnauthorized: isSelf !== true })
        : http.request({ ...parts, agent: plain })
    },
    end(): void {
      plain.destroy()
      secure.destroy()
    },
  }
}

/** Sends a request without a body; what it answers beside its status is not read. */
function readStatus(upstream: http.ClientRequest): Promise<number | null> {
  const { promise, resolve } = Promise.withResolvers<number | null>()
  const limit = setTimeout(() => upstream.destroy(), ASK_MS)
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
