/** Captured images: `/captures`, uploaded by machines, accepted or rejected by operators or on a page. */
import { getRouterParam, type H3Event } from 'h3'
import {
  AcceptSchema,
  CaptureEndSchema,
  CaptureSchema,
  MAX_CAPTURE_PART_BYTES,
  parseUploadOffset,
  parseUploadToken,
  renderUploadToken,
  TokenRequestSchema,
  UPLOAD_TOKEN_HOURS,
  UPLOAD_TOKEN_REFUSALS,
} from '#engine/capture/rules/order.ts'
import { parseLength } from '#kit/net/rules/http-range.ts'
import type { AppendRefusal, Capture, Captures } from './captures.ts'
import { json, nothing, page, seeOther } from '#kit/web/answers/answers.ts'
import { callerOf, type LogSink, peerOf } from '#kit/web/answers/caller.ts'
import { checked, readBearer } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { renderBy } from '#kit/web/access/guard.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { address, type Html } from '#kit/web/ui/html.ts'
import { formRoute, pageRoute } from '#kit/web/ui/form-notices.ts'
import { CAPTURE_PAGE, renderCapture } from './capture-view.ts'

/** Shorter than the timeouts of proxies. */
const VERIFY_WAIT_MS = 10_000
const RETRY_SECONDS = 2
const NO_STORE = { 'cache-control': 'no-store' } as const

export interface CaptureSite {
  readonly captures: Captures
  now(): Date
  readonly log: LogSink
  /** Shared with the server, which issues tokens, too. */
  readonly uploadKey: Secret
}

export const captureRoutes = (site: CaptureSite): readonly Route[] => [
  ...uploadingRoutes(site),
  ...decidingRoutes(site),
]

/** Open routes: the token of each upload decides. */
function uploadingRoutes({ captures, uploadKey, now }: CaptureSite): readonly Route[] {
  async function begin(event: H3Event, body: unknown) {
    const token = readToken(event)
    const request = checked(CaptureSchema, body)
    const { name, source } = request
    const purpose = { mac: source.mac, name, now: now() }
    const ticket = parseUploadToken(token, purpose, uploadKey.verify)
    if (!ticket.ok) throw refuse(401, UPLOAD_TOKEN_REFUSALS[ticket.refusal])
    const { capture, isNew } = await captures.begin(request, { token, ...ticket.value })
    return answer(capture, isNew ? 201 : 200, { location: `/captures/${capture.id}` })
  }

  function admit(event: H3Event): Capture {
    const capture = captures.find(idOf(event))
    if (captures.isOwner(capture.id, readToken(event))) return capture
    throw refuse(401, 'the upload token is for another capture')
  }

  async function append(event: H3Event, bytes: AsyncIterable<Uint8Array>) {
    const { id } = admit(event)
    const offset = parseUploadOffset(event.req.headers.get('upload-offset'))
    if (offset === null) throw refuse(400, 'Upload-Offset must say where these bytes begin')
    const length = parseLength({
      'content-length': event.req.headers.get('content-length') ?? undefined,
    })
    const appended = await captures.append(id, { offset, length }, bytes)
    if (!appended.ok) throw conflict(appended.refusal)
    return nothing(headersOf(appended.value))
  }

  async function finish(event: H3Event, body: unknown) {
    const { id } = admit(event)
    const finished = await captures.finish(id, checked(CaptureEndSchema, body), VERIFY_WAIT_MS)
    if (!finished.ok) throw conflict(finished.refusal)
    const isDone = finished.value.status === 'waiting'
    return isDone ? answer(finished.value) : answer(finished.value, 202, retryLater)
  }

  const open = { access: 'open' } as const
  return [
    {
      method: 'POST',
      path: '/captures',
      ...open,
      takes: 'json',
      handle: begin,
    },
    { method: 'GET', path: ONE, ...open, handle: (event) => answer(admit(event)) },
    {
      method: 'PATCH',
      path: ONE,
      ...open,
      takes: 'bytes',
      most: MAX_CAPTURE_PART_BYTES,
      handle: append,
    },
    { method: 'POST', path: `${ONE}/finish`, ...open, takes: 'json', handle: finish },
  ]
}

function decidingRoutes({ captures, uploadKey, now, log }: CaptureSite): readonly Route[] {
  function issue(event: H3Event, body: unknown) {
    const { name } = checked(TokenRequestSchema, body)
    const issuedAt = now().getTime()
    const order = captures.makeOrder()
    const token = renderUploadToken({ order, issuedAt }, { mac: null, name }, uploadKey.sign)
    const expires_at = new Date(issuedAt + UPLOAD_TOKEN_HOURS * 3_600_000).toISOString()
    const url = `${peerOf(event).baseUrl}/captures/${encodeURIComponent(name)}`
    log.info(`an upload token for ${name} was made (${renderActor(event)})`)
    return json({ name, token, url, expires_at }, 201, NO_STORE)
  }

  async function take(event: H3Event, body: unknown) {
    const { name: other } = checked(AcceptSchema, body ?? {})
    const accepted = await captures.accept(idOf(event), other ?? null)
    log.info(`the captured image ${accepted.name} was accepted (${renderActor(event)})`)
    const { name, end } = accepted
    const { bytes: size_bytes, sha256, index_sha256 } = end
    return json({ name, size_bytes, sha256, index_sha256 }, 201)
  }

  async function reject(event: H3Event) {
    const { id, name } = captures.find(idOf(event))
    await captures.reject(id)
    log.info(`the captured image ${name} was rejected (${renderActor(event)})`)
    return nothing()
  }

  const change = { access: 'admin' } as const
  return [
    {
      method: 'GET',
      path: '/captures',
      ...change,
      handle: () => json({ captures: captures.list().map(toWire) }),
    },
    { method: 'POST', path: '/captures/tokens', ...change, takes: 'json', handle: issue },
    { method: 'POST', path: `${ONE}/accept`, ...change, takes: 'json', handle: take },
    { method: 'DELETE', path: ONE, ...change, handle: reject },
  ]
}

const ONE = '/captures/:id'

const idOf = (event: H3Event): string => getRouterParam(event, 'id') ?? ''

function readToken(event: H3Event): string {
  const token = readBearer(event)
  if (token === null) throw refuse(401, 'an upload token is needed: Authorization: Bearer …')
  return token
}

const headersOf = ({ offset }: Pick<Capture, 'offset'>) => ({
  ...NO_STORE,
  'upload-offset': String(offset),
})

const retryLater = { 'retry-after': String(RETRY_SECONDS) } as const

const answer = (capture: Capture, status = 200, headers: Readonly<Record<string, string>> = {}) =>
  json(toWire(capture), status, { ...headersOf(capture), ...headers })

const conflict = (refusal: AppendRefusal) =>
  refusal.why === 'writing'
    ? refuse(409, 'another request is writing to this capture', { headers: retryLater })
    : refuse(409, `the capture continues at byte ${refusal.offset}`, {
        headers: headersOf(refusal),
      })

const toWire = ({ id, name, status, offset, source, end, ...times }: Capture) => ({
  id,
  name,
  status,
  offset,
  size_bytes: end?.bytes ?? null,
  sha256: end?.sha256 ?? null,
  index_sha256: end?.index_sha256 ?? null,
  warnings: end?.warnings ?? [],
  source,
  created_at: times.createdAt,
  touched_at: times.touchedAt,
})

/** Who changes something, for the log of the cache. */
function renderActor(event: H3Event): string {
  const { actor, ip } = renderBy(callerOf(event), peerOf(event).ip)
  return `${actor}, ${ip ?? 'no address'}`
}

interface CapturePages {
  readonly home: string
  open(event: H3Event): Promise<{
    render(view: { readonly title: string; readonly section: string; readonly body: Html }): string
    /** Null: the server's address is unknown. */
    serverLink(path: string): string | null
  }>
}

export function capturePageRoutes(
  { captures, log, now }: CaptureSite,
  pages: CapturePages,
): readonly Route[] {
  const { home } = pages

  async function show(
    event: H3Event,
    capture: Capture,
    typed: { readonly name: string; readonly error: string } | null,
  ) {
    const { render, serverLink } = await pages.open(event)
    const clock = { now: now(), zone: 'UTC' } as const
    const body = renderCapture({ capture, clock, typed, serverLink })
    const view = { title: 'Captured image', section: home, body }
    return page(render(view), typed === null ? 200 : 422)
  }

  async function accept(event: H3Event, form: URLSearchParams) {
    const id = form.get('id') ?? ''
    const name = form.get('name')?.trim() ?? ''
    const capture = find(captures, id)
    const askAgain = (error: string) => show(event, capture, { name, error })
    if (!AcceptSchema.safeParse({ name }).success)
      return askAgain('Must be a file name that ends in .img.zst')
    if (captures.isBound(name))
      return askAgain(
        'Machines are assigned an image of this name, and would be flashed with this one instead',
      )
    try {
      await captures.accept(id, name)
    } catch (thrown) {
      if (thrown instanceof Fault && thrown.code === 'conflict')
        return askAgain('Another image has this name')
      throw thrown
    }
    log.info(`the captured image ${name} was accepted (${renderActor(event)})`)
    return seeOther(address(home, { accepted: name }))
  }

  return [
    pageRoute(CAPTURE_PAGE, 'read', (event) =>
      show(event, find(captures, event.url.searchParams.get('id') ?? ''), null),
    ),
    formRoute(`${CAPTURE_PAGE}/accept`, 'admin', accept),
    formRoute(`${CAPTURE_PAGE}/reject`, 'admin', async (event, form) => {
      const { id, name } = find(captures, form.get('id') ?? '')
      await captures.reject(id)
      log.info(`the captured image ${name} was rejected (${renderActor(event)})`)
      return seeOther(address(home, { rejected: name }))
    }),
  ]
}

/** Its error is shown to a person who came too late. */
function find(captures: Captures, id: string): Capture {
  try {
    return captures.find(id)
  } catch (cause) {
    throw new Fault('not-found', 'This capture was already accepted or removed.', { cause })
  }
}
