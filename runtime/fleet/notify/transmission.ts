/** Sends a message to its receiver, in the form that its kind asks for: once, within limits, without redirects and proxies. */
import * as http from 'node:http'
import * as https from 'node:https'
import { describeFailure } from '#kit/net/rules/network-failure.ts'
import { parseRetryAfter } from '#kit/net/rules/retry.ts'
import { type SendingLimits, describeTls, routeTo, STOPPED, unfound, within } from './outgoing.ts'
import {
  renderMail,
  renderPost,
  SECRET_SHAPES,
  type HttpPost,
  type OutgoingMessage,
  type ReceiverTarget,
} from './rules/channel.ts'
import { failed, type DeliveryOutcome, judgeAnswer } from './rules/outcome.ts'

/** Sends it once, within the limit. What is needed for one kind alone is loaded where it is used. */
export async function transmit(
  {
    target,
    secret,
    message,
    left,
  }: {
    readonly target: ReceiverTarget
    /** What opens it; null: none is kept here. */
    readonly secret: string | null
    readonly message: OutgoingMessage
    /** The addresses of a mail that are left of an earlier attempt; absent: all. */
    readonly left?: readonly string[] | undefined
  },
  given: SendingLimits,
): Promise<DeliveryOutcome> {
  if (secret === null && SECRET_SHAPES[target.kind] !== null) {
    return failed('its secret is not kept on this server: edit the receiver and enter it again')
  }
  const opening = secret ?? ''
  if (target.kind === 'mail') {
    const { sendMail } = await import('./mail.ts')
    const mail = { id: message.id, left, ...renderMail(message) }
    return await sendMail(target, opening, mail, given)
  }
  const post = renderPost(target, opening, message)
  if (target.kind !== 'webhook') return await sendHttp(post, given)
  return await sendHttp({ ...post, headers: await sign(opening, message.id, post.body) }, given)
}

/** The time is that of the attempt: receivers refuse what was signed long ago. */
async function sign(secret: string, id: string, body: string): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  const now = new Date()
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  }
}

/** Bytes of an answer that are read. */
const MAX_ANSWER = 2048

/** Sends it once. It never rejects but for mistakes of ours: what keeps it from arriving is the outcome. */
export async function sendHttp(post: HttpPost, given: SendingLimits): Promise<DeliveryOutcome> {
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

function describeError(
  thrown: unknown,
  { signal, limitMs }: Pick<SendingLimits, 'signal' | 'limitMs'>,
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
