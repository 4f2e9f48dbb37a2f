/** A Redfish BMC on loopback that can lie as real ones do; what it did and was asked is on record. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import * as http from 'node:http'
import * as https from 'node:https'
import type { AddressInfo } from 'node:net'
import { H3, toNodeHandler, type H3Event } from 'h3'
import type { Certificate } from '../http/hostile-server.ts'
import type { Namespace } from '../http/namespace.ts'
import {
  documentsOf,
  HOSTILE,
  MEDIA,
  respond,
  SETTINGS,
  SYSTEM,
  TASK,
} from './redfish-documents.ts'

export const BMC_USER = { user: 'admin', password: 's3cret' }

/** What it does besides what it says. All are off at first, and may be changed while it runs. */
export interface Lies {
  /** Milliseconds until a reset becomes so. */
  lagMs: number
  /** A reset answers 202 with a task, which ends as this. */
  task: 'Completed' | 'Exception' | null
  /** The number of resets that are accepted and do nothing. */
  lostResets: number
  /** So many readings after a reset say what was asked, although it is not so yet. */
  earlyReadings: number
  /** The number of changes of the boot device that are accepted and forgotten. */
  lostBoots: number
  /** The number of requests that are answered with a 500. */
  errors: number
  /** The number of requests that are cut off without an answer; `after`: once they have been done. */
  cuts: number
  cutsAfter: number
  maxSessions: number
  /** The boot device is changed only with the entity tag that it has now. */
  wantsEtag: boolean
  weakEtags: boolean
  /** Milliseconds for which it is away after the next reset, with its sessions forgotten. */
  restartMs: number
  /** Milliseconds before each answer. */
  slowMs: number
  /** Texts of it hold what a terminal or a page must not show as it is. */
  hostile: boolean
  /** Redirects every document there. */
  redirect: string | null
  /** Answers what is no JSON, that often. */
  garbage: number
  /** Where it says what a new session is called: a path, an address at another host, or nothing but the body. */
  sessionAt: 'path' | 'address' | 'body'
  /** It wants a session, and takes no password without one. */
  wantsSession: boolean
  /** The boot mode cannot be written, or is not there. */
  mode: 'free' | 'fixed' | 'absent'
  /** The boot device is set where its settings are, and refused at the system. */
  settings: boolean
  /** Answers each change by the same path with a slash behind it. */
  slash: boolean
  /** The entity tag in the header is none that it takes. */
  wrongHeaderTag: boolean
  /** So many readings say this after it was turned on, and turning it on again is refused. */
  slowOn: { readonly reads: string; readonly readings: number } | null
}

const HONEST: Lies = {
  lagMs: 0,
  task: null,
  lostResets: 0,
  earlyReadings: 0,
  lostBoots: 0,
  errors: 0,
  cuts: 0,
  cutsAfter: 0,
  maxSessions: 8,
  wantsEtag: false,
  weakEtags: false,
  restartMs: 0,
  slowMs: 0,
  hostile: false,
  redirect: null,
  garbage: 0,
  sessionAt: 'path',
  wantsSession: false,
  mode: 'free',
  settings: false,
  slash: false,
  wrongHeaderTag: false,
  slowOn: null,
}

const BOOT = {
  BootSourceOverrideEnabled: 'Disabled',
  BootSourceOverrideTarget: 'None',
  BootSourceOverrideMode: 'UEFI',
}

export type RedfishFake = Awaited<ReturnType<typeof startRedfish>>

/** A listener that it takes instead of its own, in a namespace perhaps. */
type GivenListener = Awaited<ReturnType<Namespace['listenWithin']>>

/** Starts it on a free port of 127.0.0.1; with a certificate it speaks TLS. */
export async function startRedfish(
  certificate: Certificate | null = null,
  given: GivenListener | null = null,
) {
  const fake = createFake()
  const handle = toNodeHandler(fake.app)
  const listener: http.RequestListener = (request, response) => {
    if (fake.isAway() || fake.take('cuts')) return void request.socket.destroy()
    if (fake.take('cutsAfter')) {
      response.writeHead = () => {
        request.socket.destroy()
        return response
      }
    }
    setTimeout(() => void handle(request, response), fake.lies.slowMs)
  }
  const server =
    certificate === null
      ? http.createServer(listener)
      : https.createServer({ ...certificate }, listener)
  let connections = 0
  server.on('connection', () => (connections += 1))
  if (given === null) server.listen(0, '127.0.0.1')
  else server.listen(given.listener)
  await once(server, 'listening')
  const port = given?.port ?? (server.address() as AddressInfo).port
  return {
    ...fake,
    port,
    address: `${certificate === null ? 'http' : 'https'}://127.0.0.1:${port}`,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function createFake() {
  const lies: Lies = { ...HONEST }
  const state = {
    isOn: false,
    boot: { ...BOOT } as Record<string, unknown>,
    image: null as string | null,
    version: 1,
    awayUntil: 0,
    early: null as { readonly on: boolean; left: number } | null,
    slowLeft: 0,
  }
  /** What was to happen before a reset of the test happens no more. */
  let life = 0
  const sessions = new Map<string, string>()
  const asked: string[] = []
  const bodies: unknown[] = []
  const app = new H3()
  const take = (name: 'cuts' | 'cutsAfter' | 'errors' | 'garbage' | 'lostResets' | 'lostBoots') => {
    if (lies[name] <= 0) return false
    lies[name] -= 1
    return true
  }
  const etag = () => `${lies.weakEtags ? 'W/' : ''}"${state.version}"`

  app.use((event, next) => {
    const { pathname } = event.url
    asked.push(`${event.req.method} ${pathname}`)
    if (lies.redirect !== null) return respond(307, {}, { location: lies.redirect })
    if (lies.slash && event.req.method !== 'GET' && !pathname.endsWith('/')) {
      return respond(308, {}, { location: `${pathname}/` })
    }
    if (take('errors')) return fail(500, 'Base.1.0.InternalError')
    if (take('garbage')) return new Response('<html>starting…', { status: 200 })
    const isOpen = /^\/redfish(?:\/v1\/?)?$/.test(pathname) || isLogin(event)
    if (!isOpen && !isAllowed(event)) return fail(401, 'Base.1.0.NoValidSession')
    return next()
  })
  const isAllowed = ({ req }: H3Event) => {
    const token = req.headers.get('x-auth-token')
    if (token !== null) return [...sessions.values()].includes(token)
    if (lies.wantsSession) return false
    const { user, password } = BMC_USER
    const basic = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    return req.headers.get('authorization') === basic
  }
  const fail = (status: number, id: string) =>
    respond(status, {
      error: {
        code: id,
        message: lies.hostile ? HOSTILE : 'see the details',
        '@Message.ExtendedInfo': [{ MessageId: id, Message: lies.hostile ? HOSTILE : id }],
      },
    })

  const documents = documentsOf(state, lies, etag)
  for (const [path, make] of Object.entries(documents)) app.get(path, () => make())
  app.get('/redfish/v1/', () => documents['/redfish/v1']?.())

  app.post('/redfish/v1/SessionService/Sessions', async (event) => {
    const body = (await event.req.json()) as Record<string, unknown>
    bodies.push(body)
    if (body['UserName'] !== BMC_USER.user || body['Password'] !== BMC_USER.password) {
      return fail(401, 'Base.1.0.NoValidSession')
    }
    if (sessions.size >= lies.maxSessions) return fail(503, 'Base.1.0.SessionLimitExceeded')
    const [id, token] = [randomBytes(4).toString('hex'), randomBytes(16).toString('hex')]
    sessions.set(id, token)
    const path = `/redfish/v1/SessionService/Sessions/${id}`
    const document = { '@odata.id': path, Id: id, Name: 'session', UserName: BMC_USER.user }
    const named = { path, address: `https://bmc-17.example${path}/`, body: null }[lies.sessionAt]
    const location = named === null ? {} : { location: named }
    return respond(201, document, { ...location, 'x-auth-token': token })
  })
  app.delete('/redfish/v1/SessionService/Sessions/:id', (event) => {
    sessions.delete(event.context.params?.['id'] ?? '')
    return new Response(null, { status: 204 })
  })

  const change = async (event: H3Event) => {
    const given = event.req.headers.get('if-match')
    if (lies.wantsEtag && given === null) return fail(428, 'Base.1.0.PreconditionRequired')
    const wanted = etag().replace('W/', '')
    if (lies.wantsEtag && given !== wanted) return fail(412, 'Base.1.0.PreconditionFailed')
    const body = (await event.req.json()) as { readonly Boot?: Record<string, unknown> }
    bodies.push(body)
    if (lies.mode !== 'free' && body.Boot?.['BootSourceOverrideMode'] !== undefined) {
      return fail(400, 'Base.1.8.PropertyNotWritable')
    }
    if (!take('lostBoots')) state.boot = { ...state.boot, ...body.Boot }
    state.version += 1
    return new Response(null, { status: 204 })
  }
  app.patch(SYSTEM, (event) =>
    lies.settings ? fail(400, 'Ami.1.0.OperationSupportedInFutureStateURI') : change(event),
  )
  app.patch(SETTINGS, (event) => (lies.settings ? change(event) : fail(404, 'Base.1.0.Missing')))
  const become = (on: boolean) => {
    const now = life
    if (lies.lagMs === 0) state.isOn = on
    else setTimeout(() => life === now && (state.isOn = on), lies.lagMs)
  }
  /** False: it is on, or turning on, and one that is slow refuses to be turned on then. */
  const startSlowly = () => {
    if (lies.slowOn === null) return true
    if (state.isOn) return false
    state.slowLeft = lies.slowOn.readings
    return true
  }
  app.post(`${SYSTEM}/Actions/ComputerSystem.Reset`, async (event) => {
    const { ResetType: type } = (await event.req.json()) as { readonly ResetType?: string }
    bodies.push({ ResetType: type })
    if (!RESETS.has(type ?? '')) return fail(400, 'Base.1.0.ActionParameterNotInList')
    const on = type === 'On'
    if (on && !startSlowly()) return fail(400, 'iLO.2.14.InvalidOperationForSystemState')
    const isLost = take('lostResets')
    if (!isLost) become(on)
    if (lies.earlyReadings > 0) state.early = { on, left: lies.earlyReadings }
    if (lies.restartMs > 0) {
      state.awayUntil = performance.now() + lies.restartMs
      lies.restartMs = 0
      sessions.clear()
    }
    return lies.task === null
      ? new Response(null, { status: 204 })
      : respond(202, { '@odata.id': TASK }, { location: TASK })
  })
  app.post(`${MEDIA}/Actions/VirtualMedia.InsertMedia`, async (event) => {
    const { Image: image } = (await event.req.json()) as { readonly Image?: string }
    state.image = image ?? null
    return new Response(null, { status: 204 })
  })
  app.post(`${MEDIA}/Actions/VirtualMedia.EjectMedia`, () => {
    state.image = null
    return new Response(null, { status: 204 })
  })
  return {
    app,
    lies,
    state,
    asked,
    bodies,
    take,
    sessions: () => sessions.size,
    isAway: () => performance.now() < state.awayUntil,
    /** Makes it honest again, off, with no sessions. */
    reset() {
      life += 1
      Object.assign(lies, HONEST)
      Object.assign(state, {
        isOn: false,
        boot: { ...BOOT },
        image: null,
        awayUntil: 0,
        early: null,
        slowLeft: 0,
      })
      sessions.clear()
      asked.length = 0
      bodies.length = 0
    },
  }
}

const RESETS: ReadonlySet<string> = new Set(['On', 'ForceOff'])

function isLogin({ req, url }: H3Event): boolean {
  return req.method === 'POST' && /^\/redfish\/v1\/SessionService\/Sessions\/?$/.test(url.pathname)
}
