/** Compresses responses for clients that ask for it. */
import { randomBytes, randomInt } from 'node:crypto'
import { HTTPResponse, type H3Event } from 'h3'
import { chooseCoding, type Coding } from '../answers/rules/content-coding.ts'
import { compress, compressParts } from '../answers/content-codings.ts'
import { answer, isAnswer, jsonAnswer, streamOf, type Answer } from '../answers/answers.ts'
import type { Route } from '../answers/route.ts'

/** A smaller answer consists mostly of headers. */
const MIN_BYTES = 1024
const MAX_PADDING_BYTES = 96

const TEXTS = /^(?:text\/(?:html|css|csv|javascript|plain)|application\/(?:json|toml))\b/

/** Decided once a route: boot scripts, health checks and boot files are sent without a look. */
export const compresses = ({ access, isCompressed }: Route): boolean =>
  isCompressed ?? access !== 'open'

/** What a route has returned, compressed where the client accepts that and it is worth it. */
export function compressAnswer(value: unknown, event: H3Event): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof HTTPResponse) return compressPage(value, event)
  if (value instanceof Response) return compressStream(value, event)
  return compressData(isAnswer(value) ? value : jsonAnswer(value), event)
}

function compressPage(page: HTTPResponse, event: H3Event): unknown {
  const { body, headers, status } = page
  if (typeof body !== 'string' || !isText(headers.get('content-type'))) return page
  varyOn(headers)
  const coding = codingFor(event, body)
  if (coding === null) return page
  const isHtml = headers.get('content-type')?.startsWith('text/html') === true
  headers.set('content-encoding', coding)
  return compress(Buffer.from(isHtml ? `${body}${renderPadding()}` : body), coding).then(
    (bytes) => new HTTPResponse(bytes, { status: status ?? 200, headers }),
  )
}

function compressData(given: Answer, event: H3Event): unknown {
  const { status, headers, body } = given
  const { etag } = headers
  // A strong tag stands for these very bytes: `If-Match` and ranges need it.
  if (!isText(headers['content-type']) || (etag !== undefined && !etag.startsWith('W/')))
    return given
  if (body !== null && typeof body !== 'string') return given
  const varied = { ...headers, vary: 'accept-encoding' }
  const coding = body === null ? null : codingFor(event, body)
  if (body === null || coding === null) return answer(status, varied, body)
  return compress(Buffer.from(body), coding).then((bytes) =>
    answer(status, { ...varied, 'content-encoding': coding }, bytes),
  )
}

/** Exports; a stream of events is no text that may wait for more. */
function compressStream(response: Response, event: H3Event): unknown {
  const { body, headers, status } = response
  if (body === null || !isText(headers.get('content-type'))) return response
  varyOn(headers)
  const { coding } = chooseCoding(event.req.headers.get('accept-encoding'))
  if (coding === null) return response
  headers.set('content-encoding', coding)
  headers.delete('content-length')
  return new Response(streamOf(compressParts(body, coding)), { status, headers })
}

const isText = (type: string | null | undefined): boolean => TEXTS.test(type ?? '')

function codingFor({ req }: H3Event, body: string): Coding | null {
  const { coding, isRequired } = chooseCoding(req.headers.get('accept-encoding'))
  return isRequired || Buffer.byteLength(body) >= MIN_BYTES ? coding : null
}

function varyOn(headers: Headers): void {
  const known = headers.get('vary')
  headers.set('vary', known === null ? 'accept-encoding' : `${known}, accept-encoding`)
}

/**
 * BREACH reads a secret out of compressed pages: it has the victim's browser repeat a request with
 * guesses in it, and watches the length. No page of ours holds a secret beside what the request said:
 * there are no CSRF tokens (the guard checks where a request comes from), a new API token is shown in
 * one response only, and the cookie is `SameSite=Strict`, so that requests of other sites get the
 * login page. The random length is for secrets that a later page may hold.
 */
const renderPadding = (): string =>
  `<!-- ${randomBytes(randomInt(MAX_PADDING_BYTES)).toString('base64url')} -->`
