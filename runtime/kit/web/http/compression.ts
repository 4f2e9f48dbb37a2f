/** Compresses responses for clients that ask for it. */
import { randomBytes, randomInt } from 'node:crypto'
import type { H3Event } from 'h3'
import type { Eventual } from '#kit/foundation/eventual.ts'
import { chooseCoding, type Coding } from '../answers/rules/content-coding.ts'
import { compress, compressParts } from '../answers/content-codings.ts'
import { answer, streamOf, type Answer } from '../answers/answers.ts'
import type { Route } from '../answers/route.ts'

/** A smaller answer consists mostly of headers. */
const MIN_BYTES = 1024
const MAX_PADDING_BYTES = 96

const TEXTS = /^(?:text\/(?:html|css|csv|javascript|plain)|application\/(?:json|toml))\b/

/** Decided once a route: boot scripts, health checks and boot files are sent without a look. */
export const compresses = ({ access, isCompressed }: Route): boolean =>
  isCompressed ?? access !== 'open'

/** Where the client accepts that and it is worth it. */
export function compressAnswer(given: Answer, event: H3Event): Eventual<Answer> {
  const { status, headers, body } = given
  if (!isText(headers) || typeof body === 'function' || body instanceof Uint8Array) return given
  const { vary } = headers
  const varied = { ...headers, vary: vary === undefined ? VARY : `${vary}, ${VARY}` }
  const coding = body === null ? null : codingFor(event, body)
  if (body === null || coding === null) return answer(status, varied, body)
  const coded: Record<string, string> = { ...varied, 'content-encoding': coding }
  if (typeof body !== 'string') {
    delete coded['content-length']
    return answer(status, coded, streamOf(compressParts(body, coding)))
  }
  return compress(Buffer.from(padPage(headers, body)), coding).then((bytes) =>
    answer(status, coded, bytes),
  )
}

/** A strong tag stands for these very bytes: `If-Match` and ranges need it. */
const isText = ({ 'content-type': type = '', etag }: Answer['headers']): boolean =>
  TEXTS.test(type) && (etag === undefined || etag.startsWith('W/'))

const VARY = 'accept-encoding'

/** The length of a text that is made while it is sent is not known: it may be long. */
function codingFor({ req }: H3Event, body: string | ReadableStream): Coding | null {
  const { coding, isRequired } = chooseCoding(req.headers.get('accept-encoding'))
  const isLong = typeof body !== 'string' || Buffer.byteLength(body) >= MIN_BYTES
  return isRequired || isLong ? coding : null
}

/**
 * BREACH reads a secret out of compressed pages: it has the victim's browser repeat a request with
 * guesses in it, and watches the length. No page of ours holds a secret beside what the request said:
 * there are no CSRF tokens (the guard checks where a request comes from), a new API token is shown in
 * one response only, and the cookie is `SameSite=Strict`, so that requests of other sites get the
 * login page. The random length is for secrets that a later page may hold.
 */
const padPage = ({ 'content-type': type = '' }: Answer['headers'], body: string): string =>
  type.startsWith('text/html')
    ? `${body}<!-- ${randomBytes(randomInt(MAX_PADDING_BYTES)).toString('base64url')} -->`
    : body
