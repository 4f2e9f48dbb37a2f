/** `GET /images` and `GET /catalog.toml`: the same rows of the catalog, as JSON and as a manifest. */
import { replaceLoopback } from '#engine/catalog/rules/blob-address.ts'
import { type CatalogEntry, renderImageEntry } from '#engine/catalog/rules/catalog.ts'
import { renderImagerList, type ListedFolder } from '#appliance/imager-list.ts'
import { listForImager } from '#engine/catalog/rules/imager-images.ts'
import { renderManifest } from '#engine/catalog/rules/manifest.ts'
import { ImagesSchema, ManifestSchema } from '../rules/api-schema.ts'
import { taggedJson, text, type TaggedText } from '#kit/web/answers/answers.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { createKeptText } from '#kit/web/answers/kept-text.ts'
import { renderSchema } from '#kit/web/answers/checked.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import type { Site } from '#server/routes/site.ts'
import { documentObject, type Route } from '#kit/web/answers/route.ts'

const TOML = { 'content-type': 'application/toml; charset=utf-8', 'cache-control': 'no-cache' }

interface ImageRouteDependencies {
  readonly assets: Pick<Assets, 'url'>
  /** The release's stick and board image; null: no release site is set. */
  media(): ListedFolder | null
}

/** Open, because a wizard that booted from the network has no session. */
export function imageRoutes(
  site: Site,
  { assets, media }: ImageRouteDependencies,
): readonly Route[] {
  const { catalog } = site
  function reachableFrom(baseUrl: string): readonly CatalogEntry[] {
    const { hostname } = new URL(baseUrl)
    return catalog.snapshot().entries.map((entry) => reachable(entry, hostname))
  }
  const [keepImages, keepImager] = [createKeptText(), createKeptText()]
  /** Rendered once per change of the catalog: nearly all ask by the same address. */
  const renderImages = (baseUrl: string): TaggedText =>
    keepImages([catalog.snapshot(), baseUrl], () =>
      JSON.stringify(reachableFrom(baseUrl).map(renderImageEntry)),
    )
  function renderImager(baseUrl: string): TaggedText {
    const folder = media()
    return keepImager([catalog.snapshot(), baseUrl, folder?.url], () =>
      JSON.stringify(
        renderImagerList(
          listForImager(reachableFrom(baseUrl).map(toKnown)),
          `${baseUrl}${assets.url('icon.svg')}`,
          folder === null ? [] : [folder],
        ),
      ),
    )
  }
  return [
    {
      method: 'GET',
      path: '/images',
      access: 'open',
      isCompressed: true,
      doc: {
        summary: 'The images that the cache service holds',
        answers: { 200: renderSchema(ImagesSchema, 'output') },
      },
      handle: (event) => taggedJson(event, renderImages(peerOf(event).baseUrl)),
    },
    {
      method: 'GET',
      path: '/catalog.toml',
      access: 'open',
      doc: {
        summary: 'The same images as a catalog manifest (TOML, version 1)',
        answers: {
          200: renderSchema(ManifestSchema, 'output', { contentMediaType: 'application/toml' }),
        },
      },
      handle: (event) => text(renderManifest(reachableFrom(peerOf(event).baseUrl)), TOML),
    },
    {
      method: 'GET',
      path: '/imager.json',
      access: 'open',
      isCompressed: true,
      doc: documentObject('The same images as a custom repository of Raspberry Pi Imager'),
      handle: (event) => taggedJson(event, renderImager(peerOf(event).baseUrl)),
    },
  ]
}

/** The cache beside this server may be set by a loopback address, which no machine can use. */
const reachable = (entry: CatalogEntry, host: string): CatalogEntry => ({
  ...entry,
  url: replaceLoopback(entry.url, host),
  resolvedSrc: entry.resolvedSrc === null ? null : replaceLoopback(entry.resolvedSrc, host),
})

const toKnown = (entry: CatalogEntry) => ({
  ...entry,
  rawSizeBytes: entry.rawSizeBytes ?? null,
  rawSha256: entry.rawSha256 ?? null,
  addedAt: entry.addedAt ?? null,
})
