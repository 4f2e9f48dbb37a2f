/** Sends one request over HTTP to a receiver: to the checked addresses alone, within limits, without redirects and proxies. */
import * as http from 'node:http'
import * as https from 'node:https'
import { isIP } from 'node:net'
import { describeFailure } from '../../kit/net/rules/network-failure.ts'
import { parseRetryAfter } from '../../kit/net/rules/retry.ts'
import { routeTo, type FindOutgoing } from './outgoing.ts'
import { failed, judgeAnswer, type DeliveryOutcome } from './rules/outcome.ts'
import { within } from './within.ts'

interface HttpPost {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON. */
  readonly body: string
}

export interface HttpPostDependencies {
  readonly find: FindOutgoing
  /** PEM texts of authorities; undefined: Node's own. */
  readonly authorities: readonly string[] | undefined
  /** Milliseconds for all of it. */
  readonly limitMs: number
  readonly signal: AbortSignal
}

export const STOPPED = 'the server was stopped meanwhile'
/** Bytes of an answer that are read. */
const MAX_ANSWER = 2048

/** Sends it once. It never rejects but for mistakes of ours: what keeps it from arriving is the outcome. */
export async function sendHttp(
  post: HttpPost,
  given: HttpPostDependencies,
): Promise<DeliveryOutcome> {
  const url = new URL(post.url)
  const host = url.hostname.replaceAll(/[[\]]/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const late = AbortSignal.timeout(given.limitMs)
  const ending = AbortSignal.any([late, given.signal])
  const found = await within(given.find({ host, port }), ending)
  if (found === null) return unfound(given)
  if (!found.ok) return failed(found.refusal)
  const { request } = url.protocol === 'https:' ? https : http
  const started = request({
    method: 'POST',
    ...routeTo({ host, port }, found.value, given.limitMs),
    path: `${url.pathname}${url.search}`,
    // A connection for each message: there are few, and none is found closed.
    agent: false,
    headers: {
      host: url.host,
      'user-agent': 'flasher',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(post.body),
      ...post.headers,
    },
    signal: ending,
    ...describeTls(host, given.authorities),
  })
  return await exchange(started, post.body).catch((thrown: unknown) =>
    describeError(thrown, given, late),
  )
}

/** The limit was over, or the server was stopped, before the name server has answered. */
export const unfound = ({
  signal,
  limitMs,
}: Pick<HttpPostDependencies, 'signal' | 'limitMs'>): DeliveryOutcome =>
  failed(signal.aborted ? STOPPED : `the name server gave no address within ${limitMs / 1000} s`)

/** The certificate must be for the name; the address was decided before. */
export const describeTls = (
  host: string,
  authorities: HttpPostDependencies['authorities'],
): { readonly servername?: string; readonly ca?: string[] } => ({
  ...(isIP(host) === 0 ? { servername: host } : {}),
  ...(authorities === undefined ? {} : { ca: [...authorities] }),
})

function describeError(
  thrown: unknown,
  { signal, limitMs }: Pick<HttpPostDependencies, 'signal' | 'limitMs'>,
  late: AbortSignal,
): DeliveryOutcome {
  if (signal.aborted) return failed(STOPPED)
  if (late.aborted) return failed(`no answer within ${limitMs / 1000} s`)
  const failure = describeFailure(thrown)
  if (failure === null) throw thrown
  const { reason, hint } = failure
  return failed(hint === undefined ? reason : `${reason}. ${hint}`)
}

function exchange(request: http.ClientRequest, body: string): Promise<DeliveryOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<DeliveryOutcome>()
  let isAnswered = false
  request.on('error', (error) => {
    // What ends the connection afterwards changes nothing.
    if (!isAnswered) reject(error)
  })
  request.on('response', (response) => {
    isAnswered = true
    const { statusCode: status = 0, headers } = response
    const judge = (start: string) => judgeAnswer(status, start, readWait(headers['retry-after']))
    // A body that never ends is not waited for. It is still read: some programs end with their reader.
    if (judge('').failure === null) resolve(judge(''))
    void readStart(response).then((start) => {
      resolve(judge(start))
      request.destroy()
    })
  })
  request.end(body)
  return promise
}

/** What came before the limit or a broken connection counts: the status has said the most. */
async function readStart(response: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response) {
      if (!(chunk instanceof Buffer)) continue
      parts.push(chunk)
      size += chunk.length
      if (size >= MAX_ANSWER) break
    }
  } catch {
    // There is no more of it.
  }
  return Buffer.concat(parts).toString('utf8').slice(0, MAX_ANSWER)
}

/** Milliseconds; null: it names neither seconds nor a date. */
const readWait = (text: string | undefined): number | null =>
  parseRetryAfter(text, Date.parse(text ?? '') - Date.now(), Infinity)
