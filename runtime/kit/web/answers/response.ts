/** Builds the response from what a route returned: common headers, its length, and no body for HEAD. */
import { HTTPResponse, type H3Event } from 'h3'
import { FastResponse } from 'srvx'
import { answer, isAnswer, jsonAnswer, streamOf, type Answer, type ByteStream } from './answers.ts'
import { addHeaders, commonHeaders, CONTENT_LENGTH, NOSNIFF } from './headers.ts'

/** A response as the entrance sends it itself, in one write or part by part. */
type WholeResponse = Pick<Answer, 'status' | 'headers' | 'body'>

const WHOLE = Symbol('whole')

/**
 * Returns a response as it can be sent in one write or part by part; null for a web stream, and for
 * a response to which the framework has added headers.
 */
export const readWhole = (response: Response | { readonly [WHOLE]: WholeResponse }) =>
  WHOLE in response ? response[WHOLE] : null

const TEXT_TYPE = { 'content-type': 'text/plain; charset=UTF-8' }
const NO_STORE = { 'cache-control': 'no-store' }

/**
 * Makes the response out of what a route returned. Throws where that is no answer: nothing leaves
 * without the common headers.
 */
export function renderResponse(value: unknown, event: H3Event): Response | HTTPResponse {
  const isHead = event.req.method === 'HEAD'
  if (typeof value === 'string') return respond(answer(200, TEXT_TYPE, value), event, isHead)
  if (value instanceof HTTPResponse) {
    addHeaders(value.headers, event.context.isPrivate)
    return isHead ? withLength(value) : value
  }
  if (value instanceof Response) {
    addHeaders(value.headers, event.context.isPrivate)
    // Cancelled, so that its producer stops: nobody reads it.
    if (isHead) value.body?.cancel().catch(() => {})
    return value
  }
  if (typeof value !== 'object' || value === null) throw new TypeError('a route has no answer')
  if (isAnswer(value)) return respond(value, event, isHead)
  return respond(jsonAnswer(value), event, isHead)
}

function respond({ status, headers: own, body }: Answer, event: H3Event, isHead: boolean) {
  const headers: Record<string, string> = {
    ...(event.context.isPrivate === true && NO_STORE),
    ...own,
    // Machines know of no pages: their scripts and plans bring what they need.
    ...(event.url.pathname.startsWith('/pxe') ? NOSNIFF : commonHeaders(own['content-type'])),
  }
  // Also for HEAD: boot loaders ask for it.
  if (typeof body === 'string' || body instanceof Uint8Array)
    headers[CONTENT_LENGTH] ??= String(Buffer.byteLength(body))
  const whole: WholeResponse = { status, headers, body: isHead ? null : body }
  const web = typeof whole.body === 'function' ? streamOf(copyParts(whole.body)) : whole.body
  return Object.assign(new FastResponse(web, whole), { [WHOLE]: whole })
}

/** For requests within the process, which may keep what they read. */
async function* copyParts(parts: ByteStream): AsyncGenerator<Uint8Array> {
  for await (const part of parts(new AbortController().signal)) yield part.slice()
}

function withLength(response: HTTPResponse): HTTPResponse {
  const { body, headers } = response
  const isWhole = typeof body === 'string' || body instanceof Uint8Array
  if (!isWhole || headers.has('content-length')) return response
  headers.set('content-length', String(Buffer.byteLength(body)))
  if (!headers.has('content-type')) headers.set('content-type', TEXT_TYPE['content-type'])
  return response
}
