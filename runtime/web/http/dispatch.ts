/** Makes an h3 app of the route table: every guard stands here, once, before any handler. */
import { H3, HTTPResponse, type H3Event } from 'h3'
import { seeOther } from './answers.ts'
import { checkLength, streamBody, type BodyReader } from './body.ts'
import { answerFailure, isPage, refuse, type FailureContext } from './faults.ts'
import type { Guard } from './guard.ts'
import { measure } from './head-answer.ts'
import { addHeaders, keepPrivate } from './headers.ts'
import { LIMITS } from './limits.ts'
import type { Caller } from './caller.ts'
import type { Peer } from './peer.ts'
import type { Route } from './route.ts'

interface Dispatcher {
  readonly routes: readonly Route[]
  readonly guard: Guard
  readonly bodies: BodyReader
  readonly failures: FailureContext
  peer(event: H3Event): Peer
  /** Remembers who asks. */
  admit(event: H3Event, caller: Caller): void
  /** The answer is on its way (or, for a stream, begins). */
  answered(event: H3Event, status: number, route: string, seconds: number): void
}

export function createApp(parts: Dispatcher): H3 {
  const app = new H3({
    silent: true,
    onError: (error, event) => answerFailure(error, event, parts.failures),
    onResponse(response, event) {
      addHeaders(response, event)
      const { startedAt, route } = event.context
      if (typeof startedAt === 'number' && typeof route === 'string') {
        parts.answered(event, response.status, route, (performance.now() - startedAt) / 1000)
      }
    },
  })
  for (const [path, routes] of byPath(parts.routes)) {
    for (const route of routes) {
      const handle = guarded(route, parts)
      app.on(route.method, path, handle)
      if (isForHead(route)) app.on('HEAD', path, async (event) => measure(await handle(event)))
    }
    const allow = allowOf(routes)
    app.all(path, (event) => {
      identifyCaller(event, parts)
      return refuse(405, 'Method Not Allowed', { headers: { allow } })
    })
  }
  app.all('/**', (event) => {
    identifyCaller(event, parts)
    return refuse(404, 'Not Found')
  })
  return app
}

/** Of what is nowhere people are told in the frame that they know: those who are logged in stay so. */
function identifyCaller(event: H3Event, { peer: peerOf, guard, admit }: Dispatcher): void {
  const peer = peerOf(event)
  if (!isPage(event)) return
  keepPrivate(event)
  admit(event, guard.identifyOperator(event, peer))
}

function guarded(route: Route, parts: Dispatcher) {
  const { guard } = parts
  return (event: H3Event): unknown => {
    event.context['startedAt'] = performance.now()
    event.context['route'] = route.path
    const peer = parts.peer(event)
    guard.checkOrigin(event, peer)
    const access = typeof route.access === 'function' ? route.access() : route.access
    if (access === 'page') {
      keepPrivate(event)
      const operator = guard.identifyOperator(event, peer)
      if (operator.kind !== 'session') return sendToLogin(event)
      parts.admit(event, operator)
    } else if (access !== 'open') {
      keepPrivate(event)
      const caller = guard.identify(event, peer)
      guard.checkScope(caller, access)
      parts.admit(event, caller)
    }
    return receive(route, event, parts.bodies)
  }
}

function receive(route: Route, event: H3Event, bodies: BodyReader): unknown {
  switch (route.takes) {
    case undefined:
      checkLength(event, LIMITS.noBody)
      return route.handle(event)
    case 'json':
      return bodies
        .readJson(event, mostOf(route, LIMITS.json), route.seconds ?? LIMITS.bodySeconds)
        .then((json) => route.handle(event, json))
    case 'form':
      return bodies
        .readForm(event, mostOf(route, LIMITS.form), route.seconds ?? LIMITS.bodySeconds)
        .then((form) => route.handle(event, form))
    case 'bytes': {
      const most = mostOf(route, LIMITS.noBody)
      checkLength(event, most)
      return route.handle(event, streamBody(event, most, route.seconds ?? LIMITS.idleSeconds))
    }
  }
}

/** A page for people starts with the login page; where they wanted to go is kept for GET alone. */
function sendToLogin(event: H3Event): unknown {
  if (!isPage(event)) throw refuse(401, 'login required')
  const { pathname, search } = event.url
  const isRead = event.req.method === 'GET' || event.req.method === 'HEAD'
  const isPlain = !isRead || (pathname === '/ui' && search === '')
  const next = isPlain ? '' : `?next=${encodeURIComponent(`${pathname}${search}`)}`
  if (event.req.headers.has('hx-request')) {
    // A redirect would be followed unseen, and the login page end up in a table cell.
    return new HTTPResponse('', { status: 401, headers: { 'hx-redirect': '/ui/login' } })
  }
  return seeOther(`/ui/login${next.length > 1024 ? '' : next}`)
}

function mostOf(route: { readonly most?: number | (() => number) }, usual: number): number {
  return typeof route.most === 'function' ? route.most() : (route.most ?? usual)
}

const byPath = (routes: readonly Route[]) => Map.groupBy(routes, ({ path }) => path)

const isForHead = ({ method, answersHead }: Route) => method === 'GET' && answersHead !== false

function allowOf(routes: readonly Route[]): string {
  const methods = routes.flatMap((route) => (isForHead(route) ? ['GET', 'HEAD'] : [route.method]))
  return [...new Set(methods)].join(', ')
}
