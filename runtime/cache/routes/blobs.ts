/** The bytes of images: `/b/<token>/<name>` by source, `/files/<name>` by name, in parts or as they come. */
import { fromNodeHandler, type H3Event, HTTPResponse } from 'h3'
import { blobName, parseBlobToken } from '../../core/catalog/blob-address.ts'
import { decideFileAnswer } from '../../core/net/byte-range.ts'
import { renderError, type FaultCode } from '../../core/foundation/fault.ts'
import type { BlobReader } from '../../services/cache/blob-readers.ts'
import { sendAnswer } from '../../services/host/body-sender.ts'
import { refuse } from '../../web/http/faults.ts'
import type { Route } from '../../web/http/route.ts'
import { readSegment } from './segment.ts'
import type { CacheSite } from './site.ts'

export function blobRoutes(site: CacheSite): readonly Route[] {
  const { cache } = site

  async function sendSource(event: H3Event, source: string | null) {
    if (source === null) throw refuse(400, 'missing url')
    const reader = await cache.open(source, site.peer(event).host)
    if (reader === null) throw miss(site, source)
    return send(site, event, reader, blobName(source))
  }

  async function sendFile(event: H3Event) {
    const name = readSegment(event, 1) ?? ''
    const reader = await cache.openFile(name)
    if (reader === null) throw refuse(404, 'no such file is offered')
    return send(site, event, reader, name)
  }

  const open = { method: 'GET', access: 'open' } as const
  const byToken = (event: H3Event) => sendSource(event, readToken(event))
  return [
    { ...open, path: '/b/:token', handle: byToken },
    { ...open, path: '/b/:token/**', handle: byToken },
    { ...open, path: '/files/:name', handle: sendFile },
    {
      ...open,
      path: '/blob',
      handle: (event) => sendSource(event, event.url.searchParams.get('url')),
    },
  ]
}

function readToken(event: H3Event): string | null {
  const token = parseBlobToken(readSegment(event, 1) ?? '')
  return token.ok ? token.value : null
}

/** Trying these again by itself would fail again, and cost a whole download each time. */
const LASTING: ReadonlySet<FaultCode> = new Set([
  'digest-mismatch',
  'storage-full',
  'input-invalid',
])

/** A miss of something that we know where to get starts getting it. */
function miss({ cache, log }: CacheSite, source: string) {
  const entry = cache.findEntry(source)
  if (entry === null) return refuse(404, 'not in the cache, and no entry names it')
  const failure = cache.failureOf(entry.name)
  if (failure !== null && LASTING.has(failure.code)) {
    return refuse(404, `not in the cache: ${failure.message}`)
  }
  cache.download(entry.name, { force: false }).catch((thrown: unknown) => {
    log.warn(`${entry.name}: ${renderError(thrown)}`)
  })
  const headers = { 'retry-after': '10' }
  return refuse(404, 'not in the cache; it is being downloaded now', { headers })
}

/** Takes the reader, and gives it back when all is sent. */
async function send(site: CacheSite, event: H3Event, reader: BlobReader, name: string) {
  const plan = planAnswer(event, reader, name)
  if (plan.body === null || event.req.method === 'HEAD') {
    await reader[Symbol.asyncDispose]()
    return new HTTPResponse(null, { status: plan.status, headers: plan.headers })
  }
  const { from, to } = plan.body
  return fromNodeHandler(async (_, response) => {
    await using bytes = reader
    const body = { from, to, read: bytes.read }
    await sendAnswer(response, { ...plan, body }).catch((thrown: unknown) => {
      // The connection is closed, which is all that can still be said to the client.
      site.log.warn(`${name} was not sent to its end: ${renderError(thrown)}`)
    })
  })(event)
}

interface AnswerPlan {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Null: none is sent. `to` exclusive; null: until it ends. */
  readonly body: { readonly from: number; readonly to: number | null } | null
}

function planAnswer(event: H3Event, { sizeBytes, sha256 }: BlobReader, name: string): AnswerPlan {
  const headers = {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
    'cache-control': 'no-cache',
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  }
  const length = sizeBytes === null ? {} : { 'content-length': String(sizeBytes) }
  const whole = {
    status: 200,
    headers: { ...headers, ...length },
    body: { from: 0, to: sizeBytes },
  }
  // While nobody knows what the bytes will be, a part of them could be of another file.
  if (sizeBytes === null || sha256 === null) return whole
  return planPart(event, { sizeBytes, sha256 }, headers)
}

function planPart(
  { req }: H3Event,
  { sizeBytes, sha256 }: { readonly sizeBytes: number; readonly sha256: string },
  plain: AnswerPlan['headers'],
): AnswerPlan {
  const etag = `"${sha256}"`
  const headers = { ...plain, etag, 'accept-ranges': 'bytes', 'x-withcache-sha256': sha256 }
  const asked = {
    range: req.method === 'HEAD' ? null : req.headers.get('range'),
    ifRange: req.headers.get('if-range'),
    ifNoneMatch: req.headers.get('if-none-match'),
    ifModifiedSince: null,
  }
  const answer = decideFileAnswer(asked, { sizeBytes, etag, lastModified: '' })
  switch (answer.status) {
    case 200:
      return {
        status: 200,
        headers: { ...headers, 'content-length': String(sizeBytes) },
        body: { from: 0, to: sizeBytes },
      }
    case 206: {
      const { from, to } = answer
      const range = `bytes ${from}-${to}/${sizeBytes}`
      const length = String(to - from + 1)
      return {
        status: 206,
        headers: { ...headers, 'content-range': range, 'content-length': length },
        body: { from, to: to + 1 },
      }
    }
    case 304:
      return { status: 304, headers, body: null }
    case 416: {
      const range = { 'content-range': `bytes */${sizeBytes}`, 'content-length': '0' }
      return { status: 416, headers: { ...headers, ...range }, body: null }
    }
  }
}
