/** The API for captured images: `/captures`, uploaded by machines, accepted or rejected by operators. */
import { getRouterParam, type H3Event } from 'h3'
import {
  AcceptSchema,
  CaptureEndSchema,
  CaptureSchema,
  MAX_CAPTURE_PART_BYTES,
  parseUploadOffset,
  TokenRequestSchema,
  parseUploadToken,
  renderUploadToken,
  UPLOAD_TOKEN_HOURS,
  UPLOAD_TOKEN_REFUSALS,
} from '#engine/capture/rules/order.ts'
import { parseLength } from '#kit/net/rules/http-range.ts'
import type { AppendRefusal, Capture, Captures } from './captures.ts'
import { json, nothing } from '#kit/web/answers/answers.ts'
import { peerOf, type LogSink, callerOf } from '#kit/web/answers/caller.ts'
import { checked } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { renderBy } from '#kit/web/access/guard.ts'
import { readBearer } from '#kit/web/answers/checked.ts'
import type { Secret } from '#kit/web/access/secret.ts'
import type { Route } from '#kit/web/answers/route.ts'

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
    throw refuse(401, 'the upload token is of another capture')
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
      handle: () => json({ captures: captures.list().map(renderCapture) }),
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
  json(renderCapture(capture), status, { ...headersOf(capture), ...headers })

const conflict = (refusal: AppendRefusal) =>
  refusal.why === 'writing'
    ? refuse(409, 'another request is writing to this capture', { headers: retryLater })
    : refuse(409, `the capture continues at byte ${refusal.offset}`, {
        headers: headersOf(refusal),
      })

const renderCapture = ({ id, name, status, offset, source, end, ...times }: Capture) => ({
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
export function renderActor(event: H3Event): string {
  const { actor, ip } = renderBy(callerOf(event), peerOf(event).ip)
  return `${actor}, ${ip ?? 'no address'}`
}
