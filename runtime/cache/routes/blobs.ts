/** Serves the bytes of images: `/b/<token>/<name>` by source, `/files/<name>` by name, with ranges. */
import type { H3Event } from 'h3'
import { blobName, parseBlobToken, VERSION_PARAMETER } from '#engine/catalog/rules/blob-address.ts'
import { renderError, type FaultCode } from '#kit/foundation/fault.ts'
import type { BlobReader } from '#cache/store/blob-readers.ts'
import type { ServedFile } from '#kit/host/served-files.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { readSegment } from './segment.ts'
import type { CacheSite } from './site.ts'

export function blobRoutes(site: CacheSite): readonly Route[] {
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
