/** `GET /images` and `GET /catalog.toml`: the same rows of the catalog, as JSON and as a manifest. */
import { replaceLoopback } from '#engine/catalog/rules/cache-entry.ts'
import { type CatalogEntry, renderImageEntry } from '#engine/catalog/rules/catalog.ts'
import { renderImagerList, type ListedFolder } from '#appliance/imager-list.ts'
import { listForImager } from '#engine/catalog/rules/catalog-source.ts'
import { renderManifest } from '#engine/catalog/rules/manifest.ts'
import { ImagesSchema, ManifestSchema } from '#server/current/machines/rules/api-schema.ts'
import {
  taggedJson,
  text,
  type TaggedText,
  createKeptText,
  downloadCsv,
} from '#kit/web/answers/answers.ts'
import type { Assets } from '#kit/web/answers/assets.ts'
import { renderSchema } from '#kit/web/answers/checked.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import type { Site } from '#server/routes/site.ts'
import { documentObject, type Route } from '#kit/web/answers/route.ts'
import { parseHardware } from '#engine/inventory/rules/inventory.ts'
import { letOthersIn } from '#server/routes/many.ts'
import type { Contact } from '#server/routes/transition.ts'
import { MACHINES_CSV_HEAD, renderMachineCsv } from '#server/current/machines/rules/machine-file.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'

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

/** `/machines.csv`: the machines that a search finds, as a table whose names and labels can be read back. */
interface ShownMachine {
  readonly image: { readonly name: string } | null
  readonly view: { readonly state: string }
}

const STEP = 50

/** `view`: what is shown of a machine to a request. */
export function machineTableRoutes(
  site: Site<Machine>,
  view: (machine: Machine, contact: Contact) => ShownMachine,
): readonly Route[] {
  async function* render(found: readonly Machine[], contact: Contact) {
    let part = MACHINES_CSV_HEAD
    for (const [at, machine] of found.entries()) {
      const posted = await site.machines.findHardware(machine.mac)
      const serial = posted === null ? null : (parseHardware(posted.json)?.serial ?? null)
      const { image, view: shown } = view(machine, contact)
      part += renderMachineCsv({ machine, serial, image: image?.name ?? null, state: shown.state })
      await letOthersIn(at, STEP)
      if (at % STEP < STEP - 1) continue
      yield part
      part = ''
    }
    yield part
  }

  return [
    {
      method: 'GET',
      path: '/machines.csv',
      access: 'read',
      reach: 'list',
      doc: {
        summary: 'Machines as CSV; names, labels, racks and slots can be imported again',
        query: {
          q: 'Only those that the search of the machines page finds',
          sort: 'A column of the machines page, - before it: the other way round',
        },
        answers: { 200: { type: 'string', contentMediaType: 'text/csv' } },
      },
      async handle(event) {
        const found = site.views.match(await site.machines.list(), event.url.searchParams)
        return downloadCsv(render(found, site.contact(event)), 'machines.csv')
      },
    },
  ]
}
