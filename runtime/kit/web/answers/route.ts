/** One row of the route table: method and path, who may call it, what it accepts, its handler; the rows of exports. */
import type { H3Event } from 'h3'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { type Answer, download, downloadCsv } from './answers.ts'
import type { PageScope, RouteReach, Scope } from './rules/rights.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'

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

export type Access = 'open' | { readonly page: PageScope } | Scope

interface RouteBase {
  readonly method: Method
  /** As h3 writes it: `/machines/:mac`. */
  readonly path: string
  /** GET answers HEAD too, and whatever a GET records is not recorded then. False: HEAD is a 405. */
  readonly answersHead?: false
  /**
   * `open`: everybody. `page`: a session with this scope, else 303 to the login page; errors are HTML
   * under `/ui`. Otherwise a session or a token with this scope; errors are JSON.
   */
  readonly access: Access | (() => Access)
  /** How it keeps to the scope of people; see `reachOf`. */
  readonly reach?: 'list' | 'shared'
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
  admit?(event: H3Event): MaybePromise<void>
  /** Most bytes; a function where a setting says it. */
  readonly most?: number | (() => number)
  /** How long it may take to arrive, seconds; for `bytes`: how long nothing may arrive. */
  readonly seconds?: number
}

/** Nothing is read of what is sent (and more than 64 KiB is 413). */
interface PlainRoute extends RouteBase {
  readonly takes?: undefined
  handle(event: H3Event): MaybePromise<Answer>
}

/** JSON of at most 1 MiB unless said, at most 100 levels deep. An empty body is `undefined`. */
interface JsonRoute extends RouteBase, BodyLimits {
  readonly takes: 'json'
  handle(event: H3Event, json: unknown): MaybePromise<Answer>
}

/** JSON that the route parses itself; its length counts as held until the answer. */
interface JsonBytesRoute extends RouteBase, BodyLimits {
  readonly takes: 'json-bytes'
  handle(event: H3Event, bytes: Buffer<ArrayBuffer>): MaybePromise<Answer>
}

/** A form (urlencoded or multipart, texts alone unless said) of at most 64 KiB unless said. */
interface FormRoute extends RouteBase, BodyLimits {
  readonly takes: 'form'
  /** Whether files are taken as their texts, in UTF-8. */
  readonly takesFiles?: true
  handle(event: H3Event, form: URLSearchParams): MaybePromise<Answer>
}

/** Any bytes, as they arrive; the stream fails with `too-large` past the limit. */
interface BytesRoute extends RouteBase, BodyLimits {
  readonly takes: 'bytes'
  readonly most: number | (() => number)
  handle(event: H3Event, bytes: AsyncIterable<Uint8Array>): MaybePromise<Answer>
}

/** What `handle` returns is made by a function of answers.ts; what it refuses is thrown. */
export type Route = PlainRoute | JsonRoute | JsonBytesRoute | FormRoute | BytesRoute

/** Whoever has a scope passes no route that says nothing, unless it is about one machine. */
export const reachOf = ({ reach, path }: Pick<Route, 'reach' | 'path'>): RouteReach =>
  reach ?? (path.includes('/:mac') ? 'machine' : 'fleet')

export const documentObject = (summary: string, ...refuses: readonly number[]): RouteDoc => ({
  summary,
  answers: { 200: { type: 'object' } },
  refuses,
})

// Derives the 4xx responses of a route from the route itself, for the API document.

const MEANINGS: Readonly<Record<number, string>> = {
  400: 'Malformed: the Host header, a part of the path, or the body',
  401: 'Login required, or the token is not valid',
  403: 'The token lacks the scope, or the request comes from another site',
  404: 'Not found',
  408: 'The body took too long to arrive',
  409: 'Not possible in the present state',
  412: 'If-Match or If-None-Match does not hold, or is not supported here; nothing was changed',
  413: 'The body is too long',
  415: 'The body is of another type',
  416: 'The range is outside the file',
  422: 'Not valid: the detail names each field',
  429: 'Too many requests, or wrong tokens: try again after Retry-After seconds',
}

export const meaningOf = (status: number): string => MEANINGS[status] ?? 'Refused'

/** What reading a body comes to, by what the route takes. */
const BY_BODY = {
  nothing: [],
  json: [408, 415, 422],
  'json-bytes': [408, 415, 422],
  form: [408, 415],
  bytes: [408, 415],
} as const

/** The guard against forms of other sites, the limit of bodies, and conditions of what replaces. */
const BY_METHOD: Readonly<Record<Method, readonly number[]>> = {
  GET: [],
  POST: [403, 413],
  PATCH: [403, 413],
  PUT: [403, 412, 413],
  DELETE: [403, 412, 413],
}

/** Lists the 4xx statuses of a route, ascending; `access` is what the route asks for now. */
export function listRefusals(route: Route, access: Access): readonly number[] {
  const { method, path, takes = 'nothing', doc } = route
  const canBeMissing = path.includes('/:') && doc?.isNeverMissing !== true
  const statuses = [
    // The Host header of nearly every request is checked.
    ...(route.isForAnyHost ? [] : [400]),
    // 429: several wrong tokens came from the same address.
    ...(access === 'open' ? [] : [401, 403, 429]),
    ...BY_METHOD[method],
    ...(canBeMissing ? [404] : []),
    ...BY_BODY[takes],
    ...(doc?.refuses ?? []),
  ]
  return [...new Set(statuses)].toSorted((a, b) => a - b)
}

interface Export<Row> {
  /** The path of the table: its exports are `{path}.csv` and `{path}.json`. */
  readonly path: `/${string}`
  readonly query: Readonly<Record<string, string>>
  readonly schema: SchemaRef
  /** What a request asks for: the rows after one of them (undefined: the first ones), `STEP` at a time. */
  open(event: H3Event): (last: Row | undefined) => readonly Row[] | Promise<readonly Row[]>
  readonly csvHead: string
  renderCsvRow(row: Row): string
  toWire(row: Row): unknown
}

export const STEP = 500

/** Rows are read `STEP` at a time. */
export function exportRoutes<Row>(of: Export<Row>): readonly Route[] {
  const { path, query, open } = of
  const name = path.slice(1)
  return [
    {
      method: 'GET',
      path: `${path}.csv`,
      access: 'read',
      reach: 'list',
      doc: {
        summary: `All ${name} that the filters find, as CSV`,
        query,
        answers: { 200: { type: 'string', contentMediaType: 'text/csv' } },
        refuses: [422],
      },
      handle: (event) => downloadCsv(renderCsv(of, walk(open(event))), `${name}.csv`),
    },
    {
      method: 'GET',
      path: `${path}.json`,
      access: 'read',
      reach: 'list',
      doc: {
        summary: `All ${name} that the filters find, as one JSON array`,
        query,
        answers: { 200: of.schema },
        refuses: [422],
      },
      handle: (event) =>
        download(renderJson(of, walk(open(event))), 'application/json', `${name}.json`),
    },
  ]
}

/** Part by part, so that a long table is never in memory at once. */
async function* walk<Row>(
  read: ReturnType<Export<Row>['open']>,
): AsyncGenerator<readonly Row[], void> {
  for (let last: Row | undefined; ; await nextTurn()) {
    const found = await read(last)
    if (found.length > 0) yield found
    if (found.length < STEP) return
    last = found.at(-1)
  }
}

type RowBatches<Row> = AsyncIterable<readonly Row[]>

async function* renderCsv<Row>({ csvHead, renderCsvRow }: Export<Row>, parts: RowBatches<Row>) {
  yield csvHead
  for await (const found of parts) yield found.map(renderCsvRow).join('')
}

async function* renderJson<Row>({ toWire }: Export<Row>, parts: RowBatches<Row>) {
  let separator = '[\n'
  for await (const found of parts) {
    yield separator + found.map((row) => JSON.stringify(toWire(row))).join(',\n')
    separator = ',\n'
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n'
}
