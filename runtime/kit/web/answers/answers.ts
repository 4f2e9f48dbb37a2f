/** What routes return: one kind of value, made by a function for each use, such as a page, a redirect, JSON, a download. */
import type { H3Event } from 'h3'
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

/**
 * 304 for those who have it already. The tag is sent as a weak one, which stands for the compressed
 * bytes as well.
 */
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

/**
 * Keeps one text, the latest. `render` is called where one of `parts` is another one than before.
 */
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
