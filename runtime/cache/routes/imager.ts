/** `GET /imager.json`: the images that are here, as a custom repository of Raspberry Pi Imager. */
import type { H3Event } from 'h3'
import { blobUrl } from '#engine/catalog/rules/blob-address.ts'
import { sourceOf } from '#engine/catalog/rules/cache-entry.ts'
import { fileUrl } from '#engine/catalog/rules/dropped-file.ts'
import { renderImagerList } from '#appliance/imager-list.ts'
import { listForImager } from '#engine/catalog/rules/imager-images.ts'
import { taggedJson } from '#kit/web/answers/answers.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { createKeptText } from '#kit/web/answers/kept-text.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { CacheRow } from '#cache/store/cache-rows.ts'
import type { CacheSite } from './site.ts'

export function imagerRoutes({ cache }: CacheSite, assets: Assets): readonly Route[] {
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
