/** Builds an h3 app from the route table; every guard runs here, once, before any handler. */
import { H3, type H3Event } from 'h3'
import { after, type MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { answer, type Answer, renderResponse, seeOther, streamOf } from '../answers/answers.ts'
import {
  type BodyReader,
  checkEncoding,
  checkLength,
  createBodyReader,
  streamBody,
} from './body.ts'
import { answerFailure, type FailureContext, isPage, refuse, wantsPage } from '../answers/faults.ts'
import type { Guard } from '../access/guard.ts'
import type { Relogin } from '../access/login.ts'
import { LIMITS } from '../answers/limits.ts'
import { boundsOf, type Peer, type RecordTime } from '../answers/caller.ts'
import { createRepeatedForms, type RepeatedForms } from './repeated-forms.ts'
import type { Method, Route } from '../answers/route.ts'
import type { Bounds, RouteReach } from '../answers/rules/rights.ts'
import { randomBytes, randomInt } from 'node:crypto'
import { chooseCoding, type Coding } from '../answers/rules/content-coding.ts'
import { compress, compressParts } from '../answers/assets.ts'

interface AppDependencies {
  readonly routes: readonly Route[]
  readonly guard: Guard
  readonly findPeer: (event: H3Event) => Peer
  readonly failures: FailureContext
  /** How each route that is not open keeps to the scope of who asks; absent: none is about machines. */
  reachOf?(route: Route): RouteReach
  /** The same route for a caller with bounds; absent: bounds mean nothing here. */
  narrow?(route: Route, bounds: Bounds): Route
  /** For each route and method, where somebody wants to know how long answers take to begin. */
  timeRoute?(method: Method | 'HEAD', path: string): RecordTime
  /** Waited for before any route but the open ones is handled; absent: none waits. */
  readonly confirmRead?: (() => MaybePromise<unknown>) | undefined
  /** Shows the login page to forms whose session has ended, with what was typed; absent: they are sent there. */
  readonly relogin?: Relogin
  /** What is thrown where no route takes a request; a 404 or 405 unless said. */
  explainAbsence?(event: H3Event): Error
}

/** A path without a route answers 404, one without the method 405. */
export function createApp(parts: AppDependencies): H3 {
  const reading = { bodies: createBodyReader(), forms: createRepeatedForms() }
  const app = new H3({
    silent: true,
    onError(error, event) {
      recordTime(event, error.status)
      return after(answerFailure(error, event, parts.failures), (made) =>
        renderResponse(made, event),
      )
    },
  })
  for (const [path, routes] of Map.groupBy(parts.routes, (route) => route.path)) {
    for (const route of routes) {
      app.on(route.method, path, guarded(route, route.method, parts, reading))
      if (isForHead(route)) app.on('HEAD', path, guarded(route, 'HEAD', parts, reading))
      // By default HAProxy asks with OPTIONS whether a server is up.
      if (route.isForAnyHost) app.on('OPTIONS', path, guarded(route, route.method, parts, reading))
    }
    const allow = allowOf(routes)
    app.all(path, (event) => {
      identifyCaller(event, parts)
      throw (
        parts.explainAbsence?.(event) ?? refuse(405, 'Method Not Allowed', { headers: { allow } })
      )
    })
  }
  app.all('/**', (event) => {
    identifyCaller(event, parts)
    throw parts.explainAbsence?.(event) ?? refuse(404, 'Not Found')
  })
  return app
}

/** An operator stays logged in on the page that says that nothing is there. */
function identifyCaller(event: H3Event, { findPeer, guard }: AppDependencies): void {
  const peer = (event.context.peer = findPeer(event))
  if (!wantsPage(event)) return
  event.context.isPrivate = true
  event.context.caller = guard.identifyOperator(event, peer)
}

/** Calls of our own: h3's middleware and `onResponse` cost a closure and three promises a request. */
function guarded(
  route: Route,
  method: Method | 'HEAD',
  { guard, findPeer, timeRoute, confirmRead, narrow, reachOf, relogin }: AppDependencies,
  reading: Reading,
) {
  const isSafe = method === 'GET' || method === 'HEAD'
  const isHeld = route.access !== 'open' && route.isOfServer !== true
  const confirm = isHeld ? confirmRead : undefined
  const time = timeRoute?.(method, route.path)
  const finish = compresses(route) ? respondCompressed : respond
  const reach = reachOf?.(route) ?? 'shared'
  /** Throws, or returns the answer for who must log in first. */
  function admit(event: H3Event, { access: asked }: Route): Answer | null {
    const { context } = event
    const peer = (context.peer = findPeer(event))
    if (!isSafe) guard.checkOrigin(event, peer)
    const access = typeof asked === 'function' ? asked() : asked
    if (access === 'open') return null
    context.isPrivate = true
    const isForPage = typeof access === 'object'
    const caller = isForPage ? guard.identifyOperator(event, peer) : guard.identify(event, peer)
    if (isForPage && caller.kind !== 'session') return sendToLogin(event)
    context.caller = caller
    guard.checkScope(caller, isForPage ? access.page : access)
    guard.checkReach(caller, reach)
    return null
  }
  /** A form whose session has ended is shown again after the login. */
  const sendAway = (turned: Answer, taken: Route, event: H3Event): MaybePromise<Response> =>
    event.req.method === 'POST' && relogin?.wasLoggedIn(event) === true
      ? after(readTyped(taken, event, reading), (form) =>
          respond(relogin.askAgain(event, form), event),
        )
      : respond(turned, event)
  return (event: H3Event): MaybePromise<Response> => {
    const { context } = event
    if (time !== undefined) {
      context.startedAt = performance.now()
      context.recordTime = time
    }
    const turned = route.isForAnyHost ? null : admit(event, route)
    if (turned !== null) return sendAway(turned, route, event)
    const { caller } = context
    const bounds = caller === undefined ? null : boundsOf(caller)
    const taken = narrow === undefined || bounds === null ? route : narrow(route, bounds)
    const received =
      confirm === undefined
        ? receive(taken, event, reading)
        : after(confirm(), () => receive(taken, event, reading))
    return after(received, (answered) => finish(answered, event))
  }
}

const respondCompressed = (answered: Answer, event: H3Event): MaybePromise<Response> =>
  after(compressAnswer(answered, event), (compressed) => respond(compressed, event))

function respond(answered: Answer, event: H3Event): Response {
  const response = renderResponse(answered, event)
  recordTime(event, answered.status)
  return response
}

function recordTime({ context }: H3Event, status: number): void {
  const { recordTime: record, startedAt = 0 } = context
  record?.(status, (performance.now() - startedAt) / 1000)
}

interface Reading {
  readonly bodies: BodyReader
  readonly forms: RepeatedForms
}

function receive(route: Route, event: H3Event, reading: Reading): MaybePromise<Answer> {
  if (route.takes === undefined) return receiveNothing(route, event, reading)
  checkConditions(route, event)
  if (route.takes !== 'form') reading.forms.forget(event)
  checkEncoding(event)
  return after(route.admit?.(event), () => read(route, event, reading))
}

function receiveNothing(
  route: Exclude<Route, BodyRoute>,
  event: H3Event,
  { forms }: Reading,
): MaybePromise<Answer> {
  if (event.req.headers.has('content-length')) checkLength(event, LIMITS.noBody)
  if (route.method === 'GET') return route.handle(event)
  checkConditions(route, event)
  const isButton = typeof route.access === 'object' && event.req.method === 'POST'
  if (isButton) return forms.handle(event, null, () => route.handle(event))
  forms.forget(event)
  return route.handle(event)
}

/**
 * Throws a 412 where a request would replace or remove something under a condition that its route does
 * not look at: the change would be made whether the condition holds or not.
 */
function checkConditions({ method, path, doc }: Route, { req: { headers } }: H3Event): void {
  const replaces = method === 'PUT' || method === 'DELETE'
  if (!replaces || doc?.refuses?.includes(412) === true) return
  const name = ['If-Match', 'If-None-Match'].find((each) => headers.has(each))
  if (name === undefined) return
  throw refuse(412, `${method} ${path} does not support ${name}; nothing was changed`)
}

type BodyRoute = Exclude<Route, { readonly takes?: undefined }>

function read(route: BodyRoute, event: H3Event, { bodies, forms }: Reading): MaybePromise<Answer> {
  const { seconds = LIMITS.bodySeconds } = route
  switch (route.takes) {
    case 'json':
      return bodies
        .readJson(event, mostOf(route, LIMITS.json), seconds)
        .then((json) => route.handle(event, json))
    case 'json-bytes':
      return bodies.useJson(event, mostOf(route, LIMITS.json), seconds, (bytes) =>
        route.handle(event, bytes),
      )
    case 'form':
      return bodies
        .readForm(event, {
          most: mostOf(route, LIMITS.form),
          seconds,
          takesFiles: route.takesFiles,
        })
        .then((form) => forms.handle(event, form, () => route.handle(event, form)))
    case 'bytes': {
      const most = mostOf(route, LIMITS.noBody)
      checkLength(event, most)
      return route.handle(event, streamBody(event, most, route.seconds ?? LIMITS.idleSeconds))
    }
  }
}

async function readTyped(
  route: Route,
  event: H3Event,
  { bodies }: Reading,
): Promise<URLSearchParams | 'lost' | null> {
  if (route.takes !== 'form') return null
  try {
    return await bodies.readForm(event, { most: LIMITS.form, seconds: LIMITS.bodySeconds })
  } catch {
    event.res.headers.set('connection', 'close')
    return 'lost'
  }
}

/** A page for people starts with the login page; where they wanted to go is kept for GET alone. */
function sendToLogin(event: H3Event): Answer {
  if (!isPage(event)) throw refuse(401, 'login required')
  const { pathname, search } = event.url
  const isRead = event.req.method === 'GET' || event.req.method === 'HEAD'
  const isPlain = !isRead || (pathname === '/ui' && search === '')
  const next = isPlain ? '' : `?next=${encodeURIComponent(`${pathname}${search}`)}`
  if (event.req.headers.has('hx-request')) {
    // A redirect would be followed unseen, and the login page end up in a table cell.
    return answer(401, { 'hx-redirect': '/ui/login' }, '')
  }
  return seeOther(`/ui/login${next.length > 1024 ? '' : next}`)
}

function mostOf(route: { readonly most?: number | (() => number) }, usual: number): number {
  return typeof route.most === 'function' ? route.most() : (route.most ?? usual)
}

const isForHead = ({ method, answersHead }: Route) => method === 'GET' && answersHead !== false

function allowOf(routes: readonly Route[]): string {
  const methods = routes.flatMap((route) => [
    ...(isForHead(route) ? ['GET', 'HEAD'] : [route.method]),
    ...(route.isForAnyHost ? ['OPTIONS'] : []),
  ])
  return [...new Set(methods)].join(', ')
}

/** A smaller answer consists mostly of headers. */
const MIN_BYTES = 1024
const MAX_PADDING_BYTES = 96

const TEXTS = /^(?:text\/(?:html|css|csv|javascript|plain)|application\/(?:json|toml))\b/

/** Decided once a route: boot scripts, health checks and boot files are sent without a look. */
const compresses = ({ access, isCompressed }: Route): boolean => isCompressed ?? access !== 'open'

/** Where the client accepts that and it is worth it. */
function compressAnswer(given: Answer, event: H3Event): MaybePromise<Answer> {
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

/** Tables that are kept; one is a few hundred small functions, made in a millisecond. */
const MAX_TABLES = 100

/** `make` makes the routes for bounds; those that are not among them are the same for everybody. */
export function createNarrowing(make: (bounds: Bounds) => readonly Route[]) {
  const tables = new Map<string, ReadonlyMap<string, Route>>()

  function findTable(bounds: Bounds): ReadonlyMap<string, Route> {
    const key = JSON.stringify([bounds.administrates, bounds.reach])
    const known = tables.get(key)
    if (known !== undefined) return known
    if (tables.size >= MAX_TABLES) tables.clear()
    const table = new Map(make(bounds).map((route) => [nameOf(route), route]))
    tables.set(key, table)
    return table
  }

  return (route: Route, bounds: Bounds): Route => findTable(bounds).get(nameOf(route)) ?? route
}

const nameOf = ({ method, path }: Pick<Route, 'method' | 'path'>): string => `${method} ${path}`
