import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CatalogEntry, CatalogSnapshot } from '#engine/catalog/rules/catalog.ts'
import { parseManifest } from '#engine/catalog/rules/manifest.ts'
import { cacheRoutes } from '#server/current/server.ts'
import { imageRoutes } from '#server/current/images/catalog-routes.ts'
import { ImagesSchema, ManifestSchema } from '#server/current/machines/rules/api-schema.ts'
import { parseToml } from '#kit/config/rules/toml.ts'
import { createTestServer } from '#test/support/server/server.ts'

const test = suite('current: /images, /catalog.toml, /admin/cache/refresh')

const entryOf = (name: string, more: Partial<CatalogEntry> = {}): CatalogEntry => ({
  ref: 'a'.repeat(64),
  name,
  src: 'https://ex.com/x.img.gz',
  resolvedSrc: null,
  url: 'http://127.0.0.1:8081/b/aHR0cA/x.img.gz',
  format: 'img.gz',
  arch: 'x86_64',
  sha256: null,
  sizeBytes: 5,
  description: null,
  ...more,
})

const ENTRIES = [
  entryOf('line\nend "quoted"\u0007'),
  entryOf('bundle', { format: 'tar.gz', ref: 'b'.repeat(64), sha256: 'c'.repeat(64) }),
]

const SKIPPED = [{ name: 'bad.img', reason: 'it has no source' }]

const catalogOf = (error: string | null) => {
  const snapshot: CatalogSnapshot = { entries: ENTRIES, skipped: SKIPPED, fetchedAt: null, error }
  return { snapshot: () => snapshot, refresh: async () => snapshot }
}

const IMAGER = {
  assets: { url: (name: string) => `/static/flasher@1/${name}` },
  media: () => ({ name: 'Flasher', description: 'The stick', url: 'https://ex.com/imager.json' }),
}

const pick = (list: readonly { readonly name: string; readonly ref: string | null }[]) =>
  list.map(({ name, ref }) => [name, ref])

const serve = (error: string | null = null) =>
  createTestServer({
    routes: (site) => {
      const own = { ...site, catalog: catalogOf(error) }
      return [...imageRoutes(own, IMAGER), ...cacheRoutes(own)]
    },
  })

test('both list the same rows to anybody, and any name survives', async () => {
  await using server = await serve()
  const answer = await server.request('/images')
  assert.is(answer.status, 200)
  const rows: unknown = await answer.json()
  assert.equal(
    Object(rows).map((row: object) => Object.keys(row)),
    ENTRIES.map(() => ['name', 'format', 'size_bytes', 'url', 'ref', 'sha_short', 'arch']),
  )
  const toml = await server.request('/catalog.toml')
  assert.is(toml.headers.get('content-type'), 'application/toml; charset=utf-8')
  const manifest = parseManifest(await toml.text())
  assert.ok(manifest.ok)
  if (!manifest.ok) return
  assert.equal(pick(manifest.value.images), pick(Object(rows)))
  assert.is(manifest.value.images[0]?.name, 'line\nend "quoted"\u0007')
})

test('a cache on the loopback address is shown by the name that the machine asked for', async () => {
  await using server = await serve()
  const text = await (await server.request('/catalog.toml')).text()
  assert.match(text, /src = "http:\/\/flasher\.test:8081\/b\/aHR0cA\/x\.img\.gz"/)
})

test('a file that was dropped into the cache beside the server is shown by an address that others reach', async () => {
  const resolvedSrc = 'http://127.0.0.1:8081/files/mine.img'
  const snapshot: CatalogSnapshot = {
    entries: [entryOf('mine.img', { src: 'file:///mine.img', resolvedSrc, sizeBytes: 7 })],
    skipped: [],
    fetchedAt: null,
    error: null,
  }
  const catalog = { snapshot: () => snapshot, refresh: async () => snapshot }
  await using server = await createTestServer({
    routes: (site) => imageRoutes({ ...site, catalog }, IMAGER),
  })
  const rows: unknown = await (await server.request('/images')).json()
  assert.is(Object(rows)[0].url, 'http://flasher.test:8081/files/mine.img')
  const text = await (await server.request('/catalog.toml')).text()
  assert.match(text, 'size_bytes = 7')
  assert.not.match(text, '127.0.0.1')
})

test('Raspberry Pi Imager gets what it can write, with addresses that end as it expects', async () => {
  const [raw, decoded] = ['1'.repeat(64), '2'.repeat(64)]
  const snapshot: CatalogSnapshot = {
    entries: [
      entryOf('disk', { format: 'img', sha256: raw, url: 'http://127.0.0.1:8081/b/aa/latest' }),
      entryOf('packed', {
        format: 'img.zst',
        arch: 'arm64',
        sha256: 'c'.repeat(64),
        rawSizeBytes: 7,
        rawSha256: decoded,
        url: 'http://127.0.0.1:8081/b/bb/p.img.zst',
      }),
      entryOf('squeezed', {
        description: 'Of <our> lab',
        addedAt: '2026-11-28T23:59:59.000Z',
        url: 'http://127.0.0.1:8081/b/cc/s.img.gz',
      }),
      entryOf('tables', { format: 'qcow2' }),
      entryOf('bundle', { format: 'tar.gz' }),
    ],
    skipped: [],
    fetchedAt: null,
    error: null,
  }
  const catalog = { snapshot: () => snapshot, refresh: async () => snapshot }
  await using server = await createTestServer({
    routes: (site) => imageRoutes({ ...site, catalog }, IMAGER),
  })
  const answer = await server.request('/imager.json')
  assert.is(answer.status, 200)
  const { imager, os_list: list } = Object(await answer.json())
  const icon = 'http://flasher.test:8080/static/flasher@1/icon.svg'
  assert.equal(list, [
    {
      name: 'Flasher',
      description: 'The stick',
      icon,
      subitems_url: 'https://ex.com/imager.json',
    },
    {
      name: 'disk',
      description: '',
      icon,
      url: 'http://flasher.test:8081/b/aa/latest.img',
      extract_size: 5,
      extract_sha256: raw,
      image_download_size: 5,
      devices: ['any', 'x86_64'],
    },
    {
      name: 'packed',
      description: '',
      icon,
      url: 'http://flasher.test:8081/b/bb/p.img.zst',
      extract_size: 7,
      extract_sha256: decoded,
      image_download_size: 5,
      devices: ['any', 'arm64'],
      architecture: 'armv8',
    },
    {
      name: 'squeezed',
      description: 'Of <our> lab',
      icon,
      url: 'http://flasher.test:8081/b/cc/s.img.gz',
      image_download_size: 5,
      release_date: '2026-11-28',
      devices: ['any', 'x86_64'],
    },
  ])
  // It shows a list only for a machine that is chosen: one is from the start, and has all of them.
  assert.equal(
    Object(imager)
      .devices.filter((one: { default?: boolean }) => one.default)
      .map(Object.keys),
    [['name', 'tags', 'default', 'description', 'matching_type', 'icon']],
  )
})

test('both lists are rendered once a change of the catalog and its folder, however many ask', async () => {
  let [rendered, tag] = [0, 'v1']
  const make = (entries: CatalogSnapshot['entries']): CatalogSnapshot => ({
    get entries() {
      rendered += 1
      return entries
    },
    skipped: [],
    fetchedAt: null,
    error: null,
  })
  let snapshot = make(ENTRIES)
  const catalog = { snapshot: () => snapshot, refresh: async () => snapshot }
  const media = () => ({ name: 'Flasher', description: '', url: `https://ex.com/${tag}` })
  await using server = await createTestServer({
    routes: (site) => imageRoutes({ ...site, catalog }, { ...IMAGER, media }),
  })
  for (const path of ['/images', '/imager.json']) {
    rendered = 0
    const ask = async () => await (await server.request(path)).text()
    const first = await ask()
    assert.is(await ask(), first)
    assert.is(rendered, 1, path)
    snapshot = make([])
    assert.is.not(await ask(), first)
    snapshot = make(ENTRIES)
    assert.is(await ask(), first)
  }
  tag = 'v2'
  assert.match(await (await server.request('/imager.json')).text(), 'https://ex.com/v2')
})

test('what is answered is what the API document says of it', async () => {
  await using server = await serve()
  const document: unknown = await (await server.request('/openapi.json')).json()
  const { paths } = Object(document)
  assert.is(paths['/images'].get.responses['200'].content['application/json'].schema.type, 'array')
  const toml = paths['/catalog.toml'].get.responses['200'].content['application/toml'].schema
  assert.equal(toml.required, ['version', 'images'])
  ImagesSchema.parse(await (await server.request('/images')).json())
  const manifest = parseToml(await (await server.request('/catalog.toml')).text())
  assert.ok(manifest.ok && ManifestSchema.safeParse(manifest.value).success)
})

test('a refresh needs a session, leads back to the page, and is put on record', async () => {
  for (const error of [null, 'it cannot be reached']) {
    await using server = await serve(error)
    assert.is((await server.request('/admin/cache/refresh', { method: 'POST' })).status, 401)
    const operator = await server.operator()
    const answer = await operator('/admin/cache/refresh', { method: 'POST' })
    assert.equal([answer.status, answer.headers.get('location')], [303, '/ui/machines'])
    const headers = { accept: 'application/json' }
    const json = await operator('/admin/cache/refresh', { method: 'POST', headers })
    assert.is(json.status, 204)
    const events = await (await operator('/events')).text()
    const kind = `catalog.refresh${error === null ? 'ed' : '.failed'}`
    assert.equal(events.match(/catalog\.refresh(ed|\.failed)/g), [kind, kind])
    assert.match(events, '"left_out":["bad.img: it has no source"]')
  }
})

test.run()
