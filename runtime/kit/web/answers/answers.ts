/** What routes return: one kind of value, made by a function for each use, such as a page, a redirect, JSON, a download. */
import type { H3Event } from 'h3'
import { FastResponse } from 'srvx'
import { BYTE_ORDER_MARK } from '#kit/foundation/csv.ts'
import { etagOf } from './rules/content-coding.ts'

type AnswerHeaders = Readonly<Record<string, string>>

const ANSWER = Symbol('answer')

/** Bytes as they are read, until nobody listens any more; a part lasts until the next but one. */
export type ByteStream = (signal: AbortSignal) => AsyncIterable<Uint8Array>

/**
 * What every route returns; what it refuses is thrown (`refuse` of faults.ts). The dispatcher adds the
 * headers that all answers carry, and the length of a body in one piece.
 */
export interface Answer {
  readonly [ANSWER]: true
  readonly status: number
  readonly headers: AnswerHeaders
  /** A web stream is for texts that are made while they are sent; it is cancelled when nobody listens. */
  readonly body: string | Uint8Array<ArrayBuffer> | ByteStream | ReadableStream<Uint8Array> | null
}

/** The dispatcher adds the headers that every answer carries. */
export const answer = (status: number, headers: AnswerHeaders, body: Answer['body']): Answer => ({
  [ANSWER]: true,
  status,
  headers,
  body,
})

export const nothing = (headers: AnswerHeaders = {}) => answer(204, headers, null)

/** Leads to a local path. */
export const seeOther = (location: string, headers: AnswerHeaders = {}) =>
  answer(303, { ...headers, location }, '')

export const text = (body: string, headers: AnswerHeaders = {}) =>
  answer(200, { 'content-type': 'text/plain; charset=utf-8', ...headers }, body)

export const page = (body: string, status = 200, headers: AnswerHeaders = {}) =>
  answer(status, { 'content-type': 'text/html; charset=utf-8', ...headers }, body)

const JSON_TYPE = { 'content-type': 'application/json' }

/** A promise that was not awaited would be sent as `{}`, so it does not compile. */
type Settled<T> = T & (T extends PromiseLike<unknown> ? never : unknown)

export const json = <T>(value: Settled<T>, status = 200, headers: AnswerHeaders = {}) =>
  answer(status, { ...JSON_TYPE, ...headers }, JSON.stringify(value))

const texts = new WeakMap<object, string>()

/** For a value that is used again and never changes: it becomes text once. */
export const keptJson = (value: object) =>
  answer(
    200,
    JSON_TYPE,
    texts.getOrInsertComputed(value, (made) => JSON.stringify(made)),
  )

export interface TaggedText {
  readonly body: string
  /** The strong ETag, with its quotes. */
  readonly etag: string
  /** The response's own headers, besides those that every such answer has. */
  readonly headers?: AnswerHeaders
}

/** 304 for those who have it. A weak tag stands for the compressed bytes as well. */
export function taggedJson({ req }: H3Event, { body, etag, headers: more }: TaggedText): Answer {
  const weak = `W/${etag}`
  const headers = { ...JSON_TYPE, 'cache-control': 'no-cache', etag: weak, ...more }
  const known = req.headers.get('if-none-match')?.split(',') ?? []
  return known.some((tag) => ['*', etag, weak].includes(tag.trim()))
    ? answer(304, headers, null)
    : answer(200, headers, body)
}

/** Browsers save the rows and do not show them: the texts in them are not ours. */
export const download = (rows: AsyncIterable<string>, type: string, name: string) =>
  answer(
    200,
    {
      'content-type': `${type}; charset=utf-8`,
      'content-disposition': `attachment; filename="${name}"`,
    },
    streamOf(encode(rows)),
  )

export const downloadCsv = (rows: AsyncIterable<string>, name: string) =>
  download(mark(rows), 'text/csv', name)

async function* mark(rows: AsyncIterable<string>): AsyncGenerator<string> {
  yield BYTE_ORDER_MARK
  yield* rows
}

async function* encode(rows: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  const encoder = new TextEncoder()
  for await (const each of rows) yield encoder.encode(each)
}

/** Taken as fast as the caller reads. */
export function streamOf(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await iterator.next()
        if (done === true) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    // Nothing is read before somebody asks.
    { highWaterMark: 0 },
  )
}

/** Keeps the latest text. `render` is called where one of `parts` is another than before. */
export function createKeptText() {
  let last: { readonly parts: readonly unknown[]; readonly text: TaggedText } | null = null
  return (parts: readonly unknown[], render: () => string): TaggedText => {
    if (last === null || parts.some((part, at) => part !== last?.parts[at])) {
      const body = render()
      last = { parts, text: { body, etag: etagOf(body) } }
    }
    return last.text
  }
}

/** A response as the entrance sends it itself, in one write or part by part. */
interface WholeResponse {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Exclude<Answer['body'], ReadableStream>
}

const WHOLE = Symbol('whole')

/** Null for a web stream, and for a response to which the framework has added headers. */
export const readWhole = (response: Response | { readonly [WHOLE]: WholeResponse }) =>
  WHOLE in response ? response[WHOLE] : null

const NO_STORE = { 'cache-control': 'no-store' }

export function renderResponse(given: Answer, event: H3Event): Response {
  const { status, body } = given
  const headers = headersOf(given, event)
  const isHead = event.req.method === 'HEAD'
  if (body instanceof ReadableStream) {
    // Cancelled, so that its producer stops: nobody reads it.
    if (isHead) body.cancel().catch(() => {})
    return new FastResponse(isHead ? null : body, { status, headers })
  }
  // Also for HEAD: boot loaders ask for it.
  if (typeof body === 'string' || body instanceof Uint8Array)
    headers[CONTENT_LENGTH] ??= String(Buffer.byteLength(body))
  const whole: WholeResponse = { status, headers, body: isHead ? null : body }
  const web = typeof whole.body === 'function' ? streamOf(copyParts(whole.body)) : whole.body
  return Object.assign(new FastResponse(web, whole), { [WHOLE]: whole })
}

const headersOf = ({ headers: own }: Answer, event: H3Event): Record<string, string> => ({
  ...(event.context.isPrivate === true && NO_STORE),
  ...own,
  // Machines know of no pages: their scripts and plans bring what they need.
  ...(event.url.pathname.startsWith('/pxe') ? NOSNIFF : commonHeaders(own['content-type'])),
})

/** For requests within the process, which may keep what they read. */
async function* copyParts(parts: ByteStream): AsyncGenerator<Uint8Array> {
  for await (const part of parts(new AbortController().signal)) yield part.slice()
}

const PAGE_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** GRUB and shim compare this name byte by byte: without it they take a file for an empty or a broken one. */
export const CONTENT_LENGTH = 'Content-Length'

export const NOSNIFF = { 'x-content-type-options': 'nosniff' } as const

const DATA_HEADERS = {
  ...NOSNIFF,
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
} as const
/** A worker of ours follows events from here. */
const SCRIPT_HEADERS = {
  ...DATA_HEADERS,
  'content-security-policy': "default-src 'none'; connect-src 'self'; frame-ancestors 'none'",
} as const
const PAGE_HEADERS = {
  ...DATA_HEADERS,
  'content-security-policy': PAGE_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
} as const

function commonHeaders(type: string | null | undefined) {
  if (type?.startsWith('text/html') === true) return PAGE_HEADERS
  return type?.startsWith('text/javascript') === true ? SCRIPT_HEADERS : DATA_HEADERS
}

/** Several may be added. */
export function addCookie({ res }: H3Event, cookie: string): void {
  res.headers.append('set-cookie', cookie)
  // Answers that refuse something have headers of their own.
  res.errHeaders.append('set-cookie', cookie)
}
