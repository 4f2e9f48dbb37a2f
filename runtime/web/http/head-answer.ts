/** Answers to HEAD: the headers that a GET would have, the length included, since boot loaders ask for it. */
import { HTTPResponse } from 'h3'

/** What a route returned for GET, with the length that h3 would lose together with the body. */
export function measure(value: unknown): unknown {
  if (value instanceof HTTPResponse) return withLength(value)
  if (value instanceof Response) return dropped(value)
  if (typeof value === 'string') return withLength(new HTTPResponse(value))
  if (!isRecord(value)) return value
  const headers = { 'content-type': 'application/json;charset=UTF-8' }
  return withLength(new HTTPResponse(JSON.stringify(value), { headers }))
}

function withLength(answer: HTTPResponse): HTTPResponse {
  const { body, headers } = answer
  if (typeof body !== 'string' || headers.has('content-length')) return answer
  headers.set('content-length', String(Buffer.byteLength(body)))
  if (!headers.has('content-type')) headers.set('content-type', 'text/plain; charset=UTF-8')
  return answer
}

/** Whoever makes a stream is told that nobody reads it. */
function dropped(answer: Response): Response {
  answer.body?.cancel().catch(() => {})
  return answer
}

/** Which h3 answers as JSON. */
function isRecord(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const kind: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || kind === Object.prototype || kind === null
}
