/** The catalog's API: `/catalog`, its entries, and the pins that protect images from removal. */
import type { H3Event } from 'h3'
import { type CacheEntry, publicFields, sourceOf } from '#engine/catalog/rules/cache-entry.ts'
import { CAN_WAIT, parseWait } from '#kit/net/rules/waiting.ts'
import { etagOf } from '#kit/web/answers/rules/etag.ts'
import type { CacheRow } from '#cache/store/cache-rows.ts'
import { json, nothing, taggedJson } from '#kit/web/answers/answers.ts'
import { checked } from '#kit/web/answers/checked.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { PinsSchema, renderCatalog, renderEntry, type ShownImage } from '#cache/rules/catalog.ts'
import { readSegment } from './segment.ts'
import type { CacheSite } from './site.ts'

const SAYS_WAIT = { [CAN_WAIT.name]: CAN_WAIT.value }
const NOT_MODIFIED = 304
/** Beyond this, servers poll. */
const MAX_WAITING = 100

export function catalogRoutes(site: CacheSite): readonly Route[] {
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
    const { holder, refs, machines, captured } = checked(PinsSchema, body)
    await cache.pin(holder, refs, machines, captured)
    return nothing()
  }

  const change = { access: 'admin' } as const
  const entry = '/catalog/entries/:name'
  return [
    { method: 'GET', path: '/catalog', access: 'open', isCompressed: true, handle: list },
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
