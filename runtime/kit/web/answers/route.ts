/** One row of the route table: method and path, who may call it, what it accepts, its handler. */
import type { H3Event } from 'h3'
import type { Eventual } from '#kit/foundation/eventual.ts'
import type { Answer } from './answers.ts'
import type { Scope } from './rules/rights.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH'

/** A name of a schema that a plugin brings, or a JSON schema. */
export type SchemaRef = string | Readonly<Record<string, unknown>>

/** What the API document says of a route; pages have none. */
export interface RouteDoc {
  readonly summary: string
  readonly body?: SchemaRef
  /** The schemas of the bodies by status; null: no body. */
  readonly answers?: Readonly<Record<string, SchemaRef | null>>
  /**
   * The 4xx answers that are its own; those that follow from the route are not repeated. A `PUT` or
   * `DELETE` with 412 holds `If-Match` and `If-None-Match` itself; any other is refused with them.
   */
  readonly refuses?: readonly number[]
  /** What its path names need not be there before. */
  readonly isNeverMissing?: true
  readonly query?: Readonly<Record<string, string>>
}

export type Access = 'open' | 'page' | Scope

interface RouteBase {
  readonly method: Method
  /** As h3 writes it: `/machines/:mac`. */
  readonly path: string
  /** GET answers HEAD too, and whatever a GET records is not recorded then. False: HEAD is a 405. */
  readonly answersHead?: false
  /**
   * `open`: everybody. `page`: a session, else 303 to the login page, with what the table of pages says
   * (`createApp`); errors are HTML under `/ui`. Otherwise a session or a token with this scope; errors
   * are JSON.
   */
  readonly access: Access | (() => Access)
  /** Whether it is answered whatever the `Host` header is; nothing of the caller is known then. */
  readonly isForAnyHost?: true
  /** Whether it says how this server is, which it knows itself; all other routes but open ones wait (`createApp`). */
  readonly isOfServer?: true
  /** Unless said: texts of all routes but the open ones, which have no work to spare a request. */
  readonly isCompressed?: boolean
  readonly doc?: RouteDoc
}

interface BodyLimits {
  /** Throws for a caller who is not let in: asked before a byte of the body is read. */
  admit?(event: H3Event): Eventual<void>
  /** Most bytes; a function where a setting says it. */
  readonly most?: number | (() => number)
  /** How long it may take to arrive, seconds; for `bytes`: how long nothing may arrive. */
  readonly seconds?: number
}

/** Nothing is read of what is sent (and more than 64 KiB is 413). */
interface PlainRoute extends RouteBase {
  readonly takes?: undefined
  handle(event: H3Event): Eventual<Answer>
}

/** JSON of at most 1 MiB unless said, at most 100 levels deep. An empty body is `undefined`. */
interface JsonRoute extends RouteBase, BodyLimits {
  readonly takes: 'json'
  handle(event: H3Event, json: unknown): Eventual<Answer>
}

/** JSON that the route parses itself; its length counts as held until the answer. */
interface JsonBytesRoute extends RouteBase, BodyLimits {
  readonly takes: 'json-bytes'
  handle(event: H3Event, bytes: Buffer<ArrayBuffer>): Eventual<Answer>
}

/** A form (urlencoded or multipart, texts alone unless said) of at most 64 KiB unless said. */
interface FormRoute extends RouteBase, BodyLimits {
  readonly takes: 'form'
  /** Whether files are taken as their texts, in UTF-8. */
  readonly takesFiles?: true
  handle(event: H3Event, form: URLSearchParams): Eventual<Answer>
}

/** Any bytes, as they arrive; the stream fails with `too-large` past the limit. */
interface BytesRoute extends RouteBase, BodyLimits {
  readonly takes: 'bytes'
  readonly most: number | (() => number)
  handle(event: H3Event, bytes: AsyncIterable<Uint8Array>): Eventual<Answer>
}

/** What `handle` returns is made by a function of answers.ts; what it refuses is thrown. */
export type Route = PlainRoute | JsonRoute | JsonBytesRoute | FormRoute | BytesRoute

export const documentObject = (summary: string, ...refuses: readonly number[]): RouteDoc => ({
  summary,
  answers: { 200: { type: 'object' } },
  refuses,
})
