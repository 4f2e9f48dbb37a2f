/** Makes the response of what a route returned: common headers, its length, and for HEAD no body. */
import { Readable } from 'node:stream'
import { HTTPResponse, type H3Event } from 'h3'
import { FastResponse } from 'srvx/node'
import { answer, isAnswer, type Answer } from './answers.ts'
import { addHeaders, commonHeaders, NOSNIFF } from './headers.ts'

/** A response that is there as a whole; the entrance sends it in one write. */
interface WholeResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | Uint8Array<ArrayBuffer> | null
}

const WHOLE = Symbol('whole')

/** Null for a stream, and for a response to which the framework has added headers. */
export const readWhole = (response: Response | { readonly [WHOLE]: WholeResponse }) =>
  WHOLE in response ? response[WHOLE] : null

const JSON_TYPE = { 'content-type': 'application/json;charset=UTF-8' }
const TEXT_TYPE = { 'content-type': 'text/plain; charset=UTF-8' }
const NO_STORE = { 'cache-control': 'no-store' }

/** Throws where a route returns what is no answer: nothing leaves without the common headers. */
export function renderResponse(value: unknown, event: H3Event): Response | HTTPResponse {
  const isHead = event.req.method === 'HEAD'
  if (typeof value === 'string') return respond(answer(200, TEXT_TYPE, value), event, isHead)
  if (value instanceof HTTPResponse) {
    addHeaders(value.headers, event.context.isPrivate)
    return isHead ? withLength(value) : value
  }
  if (value instanceof Response) {
    addHeaders(value.headers, event.context.isPrivate)
    // Whoever makes a stream is told that nobody reads it.
    if (isHead) value.body?.cancel().catch(() => {})
    return value
  }
  if (typeof value !== 'object' || value === null) throw new TypeError('a route has no answer')
  if (isAnswer(value)) return respond(value, event, isHead)
  return respond(answer(200, JSON_TYPE, JSON.stringify(value)), event, isHead)
}

function respond({ status, headers: own, body }: Answer, event: H3Event, isHead: boolean) {
  const headers: Record<string, string> = {
    ...(event.context.isPrivate === true && NO_STORE),
    ...own,
    // Machines know of no pages: their scripts and plans bring what they need.
    ...(event.url.pathname.startsWith('/pxe') ? NOSNIFF : commonHeaders(own['content-type'])),
  }
  // The platform's types know no streams of Node, which the adapter sends fastest.
  if (body instanceof Readable) return Reflect.construct(FastResponse, [body, { status, headers }])
  // Also for HEAD: boot loaders ask for it.
  if (body !== null) headers['content-length'] ??= String(Buffer.byteLength(body))
  return respondWhole({ status, headers, body: isHead ? null : body })
}

const respondWhole = (whole: WholeResponse): Response =>
  Object.assign(new FastResponse(whole.body, whole), { [WHOLE]: whole })

function withLength(response: HTTPResponse): HTTPResponse {
  const { body, headers } = response
  if (typeof body !== 'string' || headers.has('content-length')) return response
  headers.set('content-length', String(Buffer.byteLength(body)))
  if (!headers.has('content-type')) headers.set('content-type', TEXT_TYPE['content-type'])
  return response
}
