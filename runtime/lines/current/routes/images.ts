/** `GET /images` and `GET /catalog.toml`: the same rows of the catalog, as JSON and as a manifest. */
import type { H3Event } from 'h3'
import { replaceLoopback } from '../../../core/catalog/blob-address.ts'
import { type CatalogEntry, renderImageEntry } from '../../../core/catalog/catalog.ts'
import { renderManifest } from '../../../core/catalog/manifest.ts'
import { ImagesSchema, ManifestSchema } from '../rules/image-schema.ts'
import { renderSchema } from '../../../web/http/checked.ts'
import type { Machine } from '../rules/machine.ts'
import type { Site } from '../../../web/fleet/site.ts'
import type { Route } from '../../../web/http/route.ts'

const TOML = { 'content-type': 'application/toml; charset=utf-8', 'cache-control': 'no-cache' }

/** Open: a network-booted wizard has no session. */
export function imageRoutes(site: Pick<Site<Machine>, 'catalog' | 'contact'>): readonly Route[] {
  const { catalog, contact } = site
  function reachableFrom(event: H3Event): readonly CatalogEntry[] {
    const { hostname } = new URL(contact(event).baseUrl)
    return catalog.snapshot().entries.map((entry) => reachable(entry, hostname))
  }
  return [
    {
      method: 'GET',
      path: '/images',
      access: 'open',
      doc: {
        summary: 'The images that the cache service holds',
        answers: { 200: renderSchema(ImagesSchema, 'output') },
      },
      handle: (event: H3Event) => reachableFrom(event).map(renderImageEntry),
    },
    {
      method: 'GET',
      path: '/catalog.toml',
      access: 'open',
      doc: {
        summary: 'The same images as a catalog manifest (TOML, version 1)',
        answers: {
          200: { ...renderSchema(ManifestSchema, 'output'), contentMediaType: 'application/toml' },
        },
      },
      handle: (event: H3Event) =>
        new Response(renderManifest(reachableFrom(event)), { headers: TOML }),
    },
  ]
}

/** A cache service beside this server may be set by a loopback address, which no machine can use. */
const reachable = (entry: CatalogEntry, host: string): CatalogEntry => ({
  ...entry,
  url: replaceLoopback(entry.url, host),
  resolvedSrc: entry.resolvedSrc === null ? null : replaceLoopback(entry.resolvedSrc, host),
})
