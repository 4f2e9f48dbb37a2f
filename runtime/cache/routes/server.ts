/** The cache service: every URL that it answers, in one table. */
import { getRouterParam, type H3, type H3Event } from 'h3'
import { UPLOAD_KEY } from '#engine/capture/rules/order.ts'
import { assetRoute, type Assets } from '#kit/web/answers/assets.ts'
import { deriveSecret, type Secret } from '#kit/web/access/secret.ts'
import { createAttempts, createPasswordCheck } from '#kit/web/access/password-check.ts'
import { createApp, createNarrowing } from '#kit/web/http/dispatch.ts'
import { createGuard, createTokenCheck, type KnownToken } from '#kit/web/access/guard.ts'
import { healthRoutes } from '#kit/web/http/metrics.ts'
import {
  type EventSubject,
  type LogSink,
  peerOf,
  type PlainEvent,
} from '#kit/web/answers/caller.ts'
import { createRelogin, loginRoutes } from '#kit/web/access/login.ts'
import { createTypedForms } from '#kit/web/access/typed-forms.ts'
import { createPeers } from '#kit/web/http/entrance.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { createSessions, type SessionBook } from '#kit/web/access/session.ts'
import { themeRoute } from '#kit/web/ui/layout.ts'
import { createCachePages, HOME } from '#cache/pages/layout.ts'
import {
  capturePageRoutes,
  captureRoutes,
  type CaptureSite,
} from '#cache/captures/capture-routes.ts'
import { type CacheSite, pageRoutes } from './pages.ts'
import {
  blobName,
  blobUrl,
  type CacheEntry,
  fileUrl,
  MAX_UPLOAD_BYTES,
  parseBlobToken,
  publicFields,
  sourceOf,
  UploadSchema,
  VERSION_PARAMETER,
} from '#engine/catalog/rules/cache-entry.ts'
import { renderImagerList } from '#appliance/imager-list.ts'
import { listForImager } from '#engine/catalog/rules/catalog-source.ts'
import { createKeptText, json, nothing, taggedJson } from '#kit/web/answers/answers.ts'
import type { CacheRow } from '#cache/store/cache-rows.ts'
import { parseContentRange } from '#kit/net/rules/http-range.ts'
import type { Upload } from '#cache/arrivals/arrivals.ts'
import { checked } from '#kit/web/answers/checked.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import { Fault, type FaultCode, renderError } from '#kit/foundation/fault.ts'
import type { BlobReader } from '#cache/store/blob-readers.ts'
import type { ServedFile } from '#kit/host/served-files.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import { CAN_WAIT, parseWait } from '#kit/net/rules/event-stream.ts'
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { PinsSchema, renderCatalog, renderEntry, type ShownImage } from '#cache/rules/catalog.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { canSee, type Reach } from '#kit/web/answers/rules/rights.ts'
import type { Capture } from '#cache/captures/captures.ts'
import type { ImageCache } from '#cache/store/image-cache.ts'

interface CacheServerDependencies extends CacheSite {
  readonly secret: Secret
  readonly book: SessionBook
  readonly assets: Assets
  readonly version: string
  /** Monotonic milliseconds; absent: of the process. */
  elapsed?(): number
  checkPassword(given: string): Promise<boolean>
  isOwnToken(given: string): boolean
  /** Another secret with all rights, which people chose. */
  isChosenToken(given: string): boolean
  /** Empty: none is set. */
  serverUrl(): string
  /** The port of the server that shares this cache's state; null: there is none. */
  portBeside(): Promise<number | null>
}

export function createCacheServer(parts: CacheServerDependencies): {
  readonly app: H3
  readonly routes: readonly Route[]
} {
  const { log, version } = parts
  // A cache on another host learns of no role that was taken away.
  const sessions = createSessions({ ...parts, renewsPeople: false })
  // Shared, as a bearer may be the password, too.
  const attempts = createAttempts(parts.elapsed)
  const recordAll = createEventRecorder(log)
  const tokens = createTokenCheck({
    tokens: {
      find: (text) => (parts.isOwnToken(text) ? TOKEN : null),
      findChosen: (text) => (parts.isChosenToken(text) ? TOKEN : null),
    },
    attempts,
    recordAll,
  })
  const guard = createGuard({ sessions, tokens })
  const site: CacheSite = parts
  const uploadKey = deriveSecret(parts.secret, UPLOAD_KEY)
  const receive = ({ cache }: CacheSite): CaptureSite => ({
    ...site,
    captures: cache.captures,
    uploadKey,
  })
  const pages = createCachePages({
    ...parts,
    countWaiting: () =>
      site.cache.captures.list().filter(({ status }) => status === 'waiting').length,
  })
  const check = createPasswordCheck({ attempts, checkPassword: parts.checkPassword })
  const typed = createTypedForms({ secret: parts.secret, now: parts.now })
  const login = {
    sessions,
    views: pages,
    check,
    recordAll,
    typed,
    app: () => app,
  }

  const makeSeenRoutes = (seen: CacheSite): readonly Route[] => [
    ...pageRoutes(seen, pages), // /ui/dashboard and its forms
    ...capturePageRoutes(receive(seen), { ...pages, home: HOME }), // /ui/capture
  ]
  const routes: readonly Route[] = [
    ...healthRoutes(version), //        /healthz /version
    ...blobRoutes(site), //             /b/:token /files/:name /blob
    ...catalogRoutes(site), //          /catalog /catalog/entries /pins
    ...imagerRoutes(site, parts.assets), // /imager.json
    ...uploadRoutes(site), //           /uploads
    ...captureRoutes(receive(site)), //      /captures
    ...loginRoutes(login), // / /ui /ui/login /ui/logout
    ...makeSeenRoutes(site),
    themeRoute, //                      /ui/theme
    assetRoute(parts.assets), //        /static/…
  ]
  const app: H3 = createApp({
    routes,
    guard,
    findPeer: createPeers(),
    narrow: createNarrowing(({ reach }) =>
      reach === null ? [] : makeSeenRoutes({ ...site, cache: createSeenCache(site.cache, reach) }),
    ),
    failures: { log, renderError: pages.renderError },
    relogin: createRelogin(login),
  })
  return { app, routes }
}

/** The cache has no journal: logins go into its log. */
const createEventRecorder =
  (log: LogSink) =>
  async (events: readonly PlainEvent[], { ip }: EventSubject) => {
    for (const { kind, summary } of events) {
      const line = `${summary} (${ip ?? 'no address'})`
      if (kind.endsWith('.failed')) log.warn(line)
      else log.info(line)
    }
  }

const TOKEN: KnownToken = { name: 'cache', scopes: ['admin'] }

/** `GET /imager.json`: the images that are here, as a custom repository of Raspberry Pi Imager. */
function imagerRoutes({ cache }: CacheSite, assets: Assets): readonly Route[] {
  const keep = createKeptText()
  function handle(event: H3Event) {
    const { baseUrl } = peerOf(event)
    const list = keep([cache.version(), baseUrl], () => {
      const ready = cache.rows().filter(({ state }) => state === 'ready')
      const images = listForImager(ready.map((row) => toKnown(row, baseUrl)))
      return JSON.stringify(renderImagerList(images, `${baseUrl}${assets.url('icon.svg')}`))
    })
    return taggedJson(event, list)
  }
  return [{ method: 'GET', path: '/imager.json', access: 'open', isCompressed: true, handle }]
}

const toKnown = ({ entry, fileName, addedAt }: CacheRow, baseUrl: string) => ({
  name: entry.name,
  description: entry.description,
  format: entry.format,
  arch: entry.arch,
  sizeBytes: entry.size_bytes,
  rawSizeBytes: entry.raw_size_bytes ?? null,
  rawSha256: entry.raw_sha256 ?? null,
  sha256: entry.sha256,
  addedAt,
  url: fileName === '' ? blobUrl(baseUrl, sourceOf(entry)) : fileUrl(baseUrl, fileName),
})

/** Shorter than the timeouts of proxies. */
const VERIFY_WAIT_MS = 10_000
const RETRY_LATER = { 'retry-after': '2' } as const

function uploadRoutes({ cache: { uploads } }: CacheSite): readonly Route[] {
  async function create(body: unknown) {
    const upload = await uploads.create(checked(UploadSchema, body))
    const status = upload.offset === 0 ? 201 : 200
    return json(renderUpload(upload), status, { location: `/uploads/${upload.id}` })
  }

  async function append(event: H3Event, bytes: AsyncIterable<Uint8Array>) {
    const part = parseContentRange(event.req.headers.get('content-range') ?? '')
    if (part === null) {
      throw refuse(400, 'Content-Range must say which bytes these are: bytes 0-8388607/52428800')
    }
    return json(renderUpload(await uploads.append(idOf(event), part, bytes)))
  }

  async function complete(event: H3Event) {
    const { name, sha256, sizeBytes } = await uploads.complete(idOf(event), VERIFY_WAIT_MS)
    const body = { name, sha256, size_bytes: sizeBytes }
    return sha256 === null ? json(body, 202, RETRY_LATER) : json(body, 201)
  }

  async function remove(event: H3Event) {
    await uploads.remove(idOf(event))
    return nothing()
  }

  const change = { access: 'admin' } as const
  const one = '/uploads/:id'
  return [
    {
      method: 'GET',
      path: '/uploads',
      ...change,
      handle: () => json({ uploads: uploads.list().map(renderUpload) }),
    },
    {
      method: 'POST',
      path: '/uploads',
      ...change,
      takes: 'json',
      handle: (_, body) => create(body),
    },
    {
      method: 'GET',
      path: one,
      ...change,
      handle: (event) => json(renderUpload(uploads.find(idOf(event)))),
    },
    {
      method: 'PATCH',
      path: one,
      ...change,
      takes: 'bytes',
      most: MAX_UPLOAD_BYTES,
      handle: append,
    },
    { method: 'POST', path: `${one}/complete`, ...change, handle: complete },
    { method: 'DELETE', path: one, ...change, handle: remove },
  ]
}

const idOf = (event: H3Event): string => getRouterParam(event, 'id') ?? ''

const renderUpload = ({ id, name, sizeBytes, offset, touchedAt }: Upload) => ({
  id,
  name,
  size_bytes: sizeBytes,
  offset,
  touched_at: touchedAt,
})

/** Serves the bytes of images: `/b/<token>/<name>` by source, `/files/<name>` by name, with ranges. */
function blobRoutes(site: CacheSite): readonly Route[] {
  const { cache } = site

  async function sendSource(event: H3Event, source: string | null) {
    if (source === null) throw refuse(400, 'missing url')
    const reader = await cache.open(source, peerOf(event).host)
    if (reader === null) throw miss(site, source)
    return sendBlob(event, reader, blobName(source))
  }

  async function sendFile(event: H3Event) {
    const name = readSegment(event, 1) ?? ''
    const reader = await cache.openFile(name)
    if (reader === null) throw refuse(404, 'no such file is offered')
    return sendBlob(event, reader, name)
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

/** Downloading these again would fail again. */
const LASTING: ReadonlySet<FaultCode> = new Set([
  'digest-mismatch',
  'image-broken',
  'storage-full',
  'input-invalid',
])

/** Starts the download of a known image. */
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

/** Throws a 404 where another version is asked for. */
async function sendBlob(event: H3Event, reader: BlobReader, name: string) {
  const wanted = event.url.searchParams.get(VERSION_PARAMETER)
  if (wanted !== null && reader.sha256 !== null && wanted !== reader.sha256) {
    // Otherwise a proxy would keep another version under this address.
    await reader[Symbol.asyncDispose]()
    throw refuse(404, 'another version of this image is here')
  }
  return (await answerFile(event, name, toServed(reader))).answer
}

const toServed = ({ sizeBytes, sha256, ...reader }: BlobReader): ServedFile => ({
  sizeBytes,
  etag: sha256 === null ? null : `"${sha256}"`,
  lastModified: null,
  headers: sha256 === null ? {} : { 'x-withcache-sha256': sha256 },
  read: reader.read,
  close: async () => reader[Symbol.asyncDispose](),
})

/** The catalog's API: `/catalog`, its entries, and the pins that protect images from removal. */
const SAYS_WAIT = { [CAN_WAIT.name]: CAN_WAIT.value }
const NOT_MODIFIED = 304
/** Beyond this, servers poll. */
const MAX_WAITING = 100

function catalogRoutes(site: CacheSite): readonly Route[] {
  const { cache } = site
  let waiting = 0

  function render(event: H3Event) {
    const all = event.url.searchParams.has('all')
    const catalog = renderCatalog(cache.rows().map(toShown), peerOf(event).baseUrl, all)
    const body = JSON.stringify(catalog)
    return taggedJson(event, { body, etag: etagOf(body), headers: SAYS_WAIT })
  }

  async function list(event: H3Event) {
    const seconds = parseWait(event.req.headers.get('prefer'))
    const isWaiting = seconds > 0 && waiting < MAX_WAITING
    if (!isWaiting || render(event).status !== NOT_MODIFIED) return render(event)
    waiting += 1
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(seconds * 1000), event.req.signal])
      await cache.awaitNews(() => render(event).status !== NOT_MODIFIED, signal)
      return render(event)
    } finally {
      waiting -= 1
    }
  }

  function showBoot(event: H3Event) {
    const found = cache.findBoot(getRouterParam(event, 'sha256') ?? '')
    if (found === null) throw refuse(404, 'not known yet, or the image can be looked into')
    return json(found)
  }

  async function add(event: H3Event, body: unknown) {
    const added = await cache.add(body)
    if (added.ok) return json(renderAdded(added.value, peerOf(event).baseUrl), 201)
    const { refusal } = added
    if (refusal.why === 'invalid') throw refuseFields(refusal.errors)
    throw refuse(409, `catalog entry with name='${refusal.name}' already exists`)
  }

  async function download(event: H3Event) {
    const name = nameOf(event)
    const started = await cache.download(name, { force: isForced(event) })
    const row = cache.rows().find(({ entry }) => entry.name === name)
    const status = started === null ? 'completed' : started.isQueued ? 'queued' : 'running'
    const src = row === undefined ? '' : sourceOf(row.entry)
    return json({ name, src, job_id: started?.id ?? 0, status }, 202)
  }

  async function remove(event: H3Event) {
    await cache.remove(nameOf(event), { force: isForced(event) })
    return nothing()
  }

  async function pin(body: unknown) {
    const { holder, refs, machines, ...report } = checked(PinsSchema, body)
    await cache.pin(holder, refs, machines, report)
    return nothing()
  }

  const change = { access: 'admin' } as const
  const entry = '/catalog/entries/:name'
  return [
    { method: 'GET', path: '/catalog', access: 'open', isCompressed: true, handle: list },
    { method: 'GET', path: '/catalog/boot/:sha256', access: 'open', handle: showBoot },
    { method: 'POST', path: '/catalog/entries', ...change, takes: 'json', handle: add },
    { method: 'DELETE', path: '/catalog/entries', ...change, handle: remove },
    { method: 'DELETE', path: entry, ...change, handle: remove },
    { method: 'POST', path: `${entry}/download`, ...change, handle: download },
    {
      method: 'POST',
      path: `${entry}/cancel`,
      ...change,
      async handle(event) {
        if (!(await cache.cancel(nameOf(event)))) throw refuse(409, 'it is not being downloaded')
        return nothing()
      },
    },
    { method: 'POST', path: '/pins', ...change, takes: 'json', handle: (_, body) => pin(body) },
  ]
}

const renderAdded = (entry: CacheEntry, baseUrl: string) =>
  renderEntry({ entry: publicFields(entry), fileName: '' }, baseUrl)

/** In the path (any name, percent-encoded) or as `?name=`. */
const nameOf = (event: H3Event): string =>
  readSegment(event, 2) ?? event.url.searchParams.get('name') ?? ''

const isForced = (event: H3Event): boolean =>
  ['1', 'true', 'yes'].includes(event.url.searchParams.get('force') ?? '')

const toShown = ({ download, ...row }: CacheRow): ShownImage => ({
  ...row,
  bytesDone: download?.growth.bytes ?? null,
  rate: download === null ? null : Math.round(download.rate),
})

/** From 0. Decodes slashes, which the framework does not. Null: missing or wrongly encoded. */
function readSegment(event: H3Event, index: number): string | null {
  const segment = URL.parse(event.req.url)?.pathname.split('/')[index + 1]
  return segment ? decodePart(segment) : null
}

/**
 * The cache as a person limited to these labels sees it. A capture is seen where every server that
 * ordered images of its machine gives it one of them. Uses by machines are hidden.
 */
function createSeenCache(cache: ImageCache, reach: Exclude<Reach, null>): ImageCache {
  const { captures } = cache
  const isSeen = ({ source: { mac } }: Capture): boolean => {
    const known = mac === null ? [] : cache.listLabels(mac)
    return known.length > 0 && known.every((labels) => canSee(reach, labels))
  }
  return {
    ...cache,
    rows: () => cache.rows().map((row) => ({ ...row, machines: null, isPinned: false })),
    captures: {
      ...captures,
      list: () => captures.list().filter(isSeen),
      find(id) {
        const capture = captures.find(id)
        if (!isSeen(capture)) throw new Fault('not-found', 'there is no such capture')
        return capture
      },
    },
  }
}
