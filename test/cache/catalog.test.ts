import { createHash } from 'node:crypto'
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { importCatalog } from '#cache/store/image-cache.ts'
import { parseCatalogDocument } from '#engine/catalog/rules/manifest.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { makeBytes } from '#test/support/collect.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  asOperator,
  bring,
  makeFolder,
  openCache,
  PASSWORD,
  serveCache,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('cache: catalog over HTTP')
const BYTES = makeBytes(50_000)
const origin = () => startHostileServer((request, response) => sendFile(BYTES, request, response))

const readImager = async (base: string) => {
  const { os_list: list } = Object(await (await fetch(`${base}/imager.json`)).json())
  return list
}
const sizesIn = (list: readonly Record<string, unknown>[]) =>
  list.map((one) => [one['name'], one['extract_size'], one['extract_sha256']])

const send = (method: string, url: string, body?: unknown, headers: object = asOperator) =>
  fetch(url, {
    method,
    redirect: 'manual',
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })

test('adds, downloads, lists and removes as the deployed service does', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const entries = `${served.base}/catalog/entries`
  const src = `${source.origin}/a b.img`
  const added = await send('POST', entries, { name: 'a/b (x86_64)', src, format: null, arch: '' })
  assert.is(added.status, 201)
  assert.equal(await added.json(), { name: 'a/b (x86_64)', src })
  assert.is((await send('POST', entries, { name: 'a/b (x86_64)', src })).status, 409)
  const empty: unknown = await (await fetch(`${served.base}/catalog`)).json()
  assert.equal(empty, { url: '', env_url: '', fetched_at: '', last_error: '', entries: [] })
  const one = `${entries}/${encodeURIComponent('a/b (x86_64)')}`
  const started = await send('POST', `${one}/download`)
  assert.is(started.status, 202)
  const job: unknown = await started.json()
  assert.equal(Object.keys(Object(job)), ['name', 'src', 'job_id', 'status'])
  await until(() => served.cache.rows()[0]?.state === 'ready')
  const list: unknown = await (await fetch(`${served.base}/catalog`)).json()
  const [listed] = Object(list).entries
  assert.equal([listed.name, listed.size_bytes, listed.arch], ['a/b (x86_64)', 50_000, 'x86_64'])
  assert.is(
    (await send('DELETE', `${entries}?name=${encodeURIComponent('a/b (x86_64)')}`)).status,
    204,
  )
  assert.is((await send('DELETE', one)).status, 404)
})

test('images are listed in the natural order of their names', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const entries = `${served.base}/catalog/entries`
  for (const name of ['lab 2.4.10', 'lab 2.4.2', 'Alpine']) {
    const src = `http://127.0.0.1:9/${encodeURIComponent(name)}.img`
    assert.is((await send('POST', entries, { name, src })).status, 201)
  }
  const list: unknown = await (await fetch(`${served.base}/catalog?all`)).json()
  assert.equal(
    Object(list).entries.map(({ name }: { name: string }) => name),
    ['Alpine', 'lab 2.4.2', 'lab 2.4.10'],
  )
})

test('an image in frames is listed with the digest of its index, which plans then name', async () => {
  const packed = await packBuffer(BYTES)
  await using folder = await makeFolder()
  await using source = await startHostileServer((request, response) =>
    sendFile(packed.file, request, response),
  )
  await using served = await serveCache(folder.path)
  const entries = `${served.base}/catalog/entries`
  await send('POST', entries, { name: 'a', src: `${source.origin}/a.img.zst` })
  await send('POST', `${entries}/a/download`)
  await until(() => served.cache.rows()[0]?.state === 'ready')
  const text = await (await fetch(`${served.base}/catalog`)).text()
  const catalog = parseCatalogDocument(text, served.base)
  assert.ok(catalog.ok)
  const [entry] = catalog.value.entries
  assert.equal([entry?.sha256, entry?.indexSha256], [packed.sha256, packed.indexSha256])
})

test('the list for the imager is rendered once a change, however many ask', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const { cache, base } = served
  const { rows, version } = cache
  let rendered = 0
  const versions = new Set<number>()
  const noted = () => {
    const now = version()
    versions.add(now)
    return now
  }
  const counted = () => {
    rendered += 1
    return rows()
  }
  Object.assign(cache, { rows: counted, version: noted })
  for (let asked = 0; asked < 20; asked += 1) assert.equal(await readImager(base), [])
  // The folder may be scanned in between.
  assert.is(rendered, versions.size)
  await writeFile(join(folder.path, 'raw.img'), BYTES)
  await until(() => rows()[0]?.state === 'ready')
  assert.is((await readImager(base)).length, 1)
  await cache.remove('raw.img', { force: false })
  assert.equal(await readImager(base), [])
})

test('Raspberry Pi Imager gets size and digest of the decoded image, also after a restart', async () => {
  const packed = await packBuffer(BYTES)
  await using folder = await makeFolder()
  await using source = await startHostileServer((request, response) =>
    sendFile(packed.file, request, response),
  )
  const wanted = [BYTES.length, createHash('sha256').update(BYTES).digest('hex')]
  {
    await using served = await serveCache(folder.path)
    assert.equal(await readImager(served.base), [])
    await served.cache.add({ name: 'a', src: `${source.origin}/latest`, format: 'img.zst' })
    await served.cache.download('a', { force: false })
    await writeFile(join(folder.path, 'b c%20.img.zst'), packed.file)
    await writeFile(join(folder.path, 'raw.img'), BYTES)
    await until(() => served.cache.rows().filter(({ state }) => state === 'ready').length === 3)
    const list = await readImager(served.base)
    assert.equal(sizesIn(list), [
      ['a', ...wanted],
      ['b c%20.img.zst', ...wanted],
      ['raw.img', ...wanted],
    ])
    for (const { url, name, icon, image_download_size: size } of list) {
      assert.match(url, name === 'raw.img' ? /\.img$/ : /\.img\.zst$/)
      const bytes = Buffer.from(await (await fetch(url)).arrayBuffer())
      assert.ok(bytes.equals(name === 'raw.img' ? BYTES : packed.file), name)
      assert.is(size, bytes.length)
      assert.is((await fetch(icon)).headers.get('content-type'), 'image/svg+xml')
    }
    assert.is(
      parseCatalogDocument(await (await fetch(`${served.base}/catalog`)).text(), '').ok,
      true,
    )
  }
  // As a kill leaves it before it was recorded what an image is once it is decoded.
  const records = join(folder.path, '.cache/records')
  for (const name of await readdir(records))
    if (name.startsWith('decoded+')) await rm(join(records, name))
  await using served = await serveCache(folder.path)
  await until(() =>
    served.cache.rows().every(({ entry }) => entry.format === 'img' || entry.raw_sha256),
  )
  assert.equal(sizesIn(await readImager(served.base)).slice(0, 2), [
    ['a', ...wanted],
    ['b c%20.img.zst', ...wanted],
  ])
})

test('the list can be asked for again at no cost, and with all that is not here', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  await served.cache.add({ src: 'https://me:secret@h.invalid/x.img' })
  const all = await fetch(`${served.base}/catalog?all`)
  const text = await all.text()
  assert.not.ok(text.includes('secret'), text)
  const [entry] = Object(JSON.parse(text)).entries
  assert.equal([entry.name, entry.state, entry.pinned], ['x.img', 'absent', false])
  const etag = all.headers.get('etag') ?? ''
  const again = await fetch(`${served.base}/catalog?all`, { headers: { 'if-none-match': etag } })
  assert.is(again.status, 304)
  await served.cache.add({ src: 'https://h.invalid/y.img' })
  const changed = await fetch(`${served.base}/catalog?all`, { headers: { 'if-none-match': etag } })
  assert.is(changed.status, 200)
  await changed.body?.cancel()
})

test('bodies that cannot be meant are refused by field', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const rows: readonly (readonly [unknown, string])[] = [
    [{}, 'src'],
    [{ src: 'garbage' }, 'src'],
    [{ src: 'https://h/x', size_bytes: 'abc' }, 'size_bytes'],
    [[], 'body'],
    [7, 'body'],
  ]
  for (const [body, field] of rows) {
    const answer = await send('POST', `${served.base}/catalog/entries`, body)
    assert.is(answer.status, 422, JSON.stringify(body))
    const { detail } = Object(await answer.json())
    assert.is(detail[0].loc.at(-1), field)
  }
  const pins = await send('POST', `${served.base}/pins`, { holder: 'x', refs: ['short'] })
  assert.is(pins.status, 422)
  const counts = { holder: 'x', refs: ['a'.repeat(64)], machines: [1, 2] }
  assert.is((await send('POST', `${served.base}/pins`, counts)).status, 422)
})

test('nothing is changed without a token or a session, nor from another site', async () => {
  await using folder = await makeFolder()
  // Ten minutes pass at each look at the clock, so that wrong tokens are never slowed.
  let time = 1_800_000_000_000
  const now = () => new Date((time += 600_000))
  await using served = await serveCache(folder.path, { now })
  const body = { src: 'https://h/x.img' }
  const entries = `${served.base}/catalog/entries`
  const none = {}
  const wrong = { authorization: 'Bearer wrong' }
  for (const headers of [none, wrong]) {
    assert.is((await send('POST', entries, body, headers)).status, 401)
    assert.is((await send('DELETE', `${entries}?name=x`, undefined, headers)).status, 401)
    assert.is((await send('POST', `${entries}/x/download`, undefined, headers)).status, 401)
    assert.is((await send('POST', `${entries}/x/cancel`, undefined, headers)).status, 401)
    assert.is(
      (await send('POST', `${served.base}/pins`, { holder: 'x', refs: [] }, headers)).status,
      401,
    )
    const page = await send('POST', `${served.base}/ui/remove`, undefined, headers)
    assert.equal([page.status, page.headers.get('location')], [303, '/ui/login'])
  }
  const foreign = { ...asOperator, origin: 'http://elsewhere.invalid' }
  assert.is((await send('POST', entries, body, foreign)).status, 403)
  assert.equal(served.cache.rows(), [])
})

test('a server says what its machines are bound to, and that is kept', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ name: 'x', src })
  const ref = refOf(src)
  const refs = [ref.ok ? ref.value : '']
  assert.is((await send('POST', `${served.base}/pins`, { holder: 'flasher', refs })).status, 204)
  const one = `${served.base}/catalog/entries/x`
  const refused = await send('DELETE', one)
  assert.is(refused.status, 409)
  assert.match(Object(await refused.json()).detail, /machines use x/)
  assert.is((await send('DELETE', `${one}?force=1`)).status, 204)
})

test('the page does all of it, without a script', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const post = (path: string, fields: Record<string, string>, cookie = '') =>
    fetch(`${served.base}${path}`, {
      method: 'POST',
      redirect: 'manual',
      headers: { cookie, origin: served.base },
      body: new URLSearchParams(fields),
    })
  assert.is((await post('/ui/login', { password: 'wrong' })).status, 401)
  const login = await post('/ui/login', { password: PASSWORD, next: '/ui/dashboard' })
  const cookie = (login.headers.get('set-cookie') ?? '').split(';', 1)[0] ?? ''
  assert.match(cookie, /^flasher-token=./)
  const read = async (path: string) =>
    (await fetch(`${served.base}${path}`, { headers: { cookie } })).text()
  assert.match(await read('/ui/dashboard'), /No images yet/)

  const name = '<script>alert(1)</script>'
  const added = await post('/ui/add', { src: `${source.origin}/x.img`, name, sha256: '' }, cookie)
  assert.equal([added.status, added.headers.get('location')?.split('?')[0]], [303, '/ui/dashboard'])
  await until(() => served.cache.rows()[0]?.state === 'ready')
  const shown = await read(added.headers.get('location') ?? '')
  assert.ok(shown.includes('&lt;script&gt;alert(1)') && !shown.includes(name))
  const refused = await post('/ui/add', { src: 'ftp://h/x', name: 'typed' }, cookie)
  const again = await refused.text()
  assert.is(refused.status, 422)
  assert.match(again, /must be an http:\/\/, https:\/\/, oras:\/\/ or s3:\/\/ address/)
  assert.match(again, /value="typed"/)
  const question = `/ui/remove?name=${encodeURIComponent(name)}`
  assert.match(await read(question), /from the list[^]*Remove image/)
  const ref = refOf(`${source.origin}/x.img`)
  const used = { holder: 'flasher', refs: [ref.ok ? ref.value : ''], machines: [14] }
  const users = Array.from({ length: 10 }, (_, at) => ({
    ref: used.refs[0],
    mac: `52:54:00:00:00:0${at}`,
    name: `<b>${at}`,
  }))
  await send('POST', `${served.base}/pins`, { ...used, users })
  const asked = await read(question)
  assert.match(asked, /14 machines use this image[^]*&lt;b&gt;0[^]*&lt;b&gt;9[^]*and 4 more/)
  assert.match(asked, /name="force" value="1"[^]*Remove anyway/)
  assert.is((await post('/ui/remove', { name }, cookie)).status, 409)
  assert.is((await post('/ui/remove', { name, force: '1' }, cookie)).status, 303)
  assert.equal(served.cache.rows(), [])
  assert.is((await post('/ui/fetch', { name }, cookie)).status, 404)
})

test('a catalog manifest is added as a whole; what is there stays', async () => {
  await using folder = await makeFolder()
  const toml = [
    'version = 1',
    '[[images]]',
    'name = "one (x86_64)"',
    'src = "oras://registry.invalid/a/b:latest"',
    '[[images]]',
    'name = "taken"',
    'src = "https://h.invalid/new.img"',
    '[[images]]',
    'name = "known"',
    'src = "https://h.invalid/known.img"',
    '[[images]]',
    'name = "file"',
    'src = "file:///etc/passwd"',
  ].join('\n')
  await using source = await startHostileServer((_request, response) => void response.end(toml))
  await using served = await serveCache(folder.path)
  await served.cache.add({ name: 'taken', src: 'https://h.invalid/old.img' })
  await served.cache.add({ name: 'known', src: 'https://h.invalid/known.img' })
  const imported = await importCatalog(served.cache, `${source.origin}/catalog.toml`, {})
  assert.equal(imported.added, ['one (x86_64)'])
  assert.equal(imported.known, ['known'])
  assert.is(imported.flaws.length, 2)
  assert.match(
    imported.flaws.join('; '),
    /taken: another image has that name.*file: src: to add a file, copy it/,
  )
})

const START = Date.parse('2026-11-21T06:55:53.000Z')
const YEAR = 365 * 86_400_000
const HOUR = 3_600_000
const MOVES = [0, 30, -20, 1, 0]
const SOURCE = {
  mac: null,
  hostname: null,
  run: null,
  disk: { path: null, model: null, serial: 'S', size_bytes: 1_000_000 },
  generalized: false,
}

test('an upload and a capture in progress stay, also after restarts, and go after a silent day', async () => {
  await using folder = await makeFolder()
  const clock = { years: 0, elapsed: 0 }
  const open = () =>
    openCache(folder.path, {
      now: () => new Date(START + clock.years * YEAR + clock.elapsed),
      elapsed: () => clock.elapsed,
    })
  for (const [turn, years] of MOVES.entries()) {
    clock.years = years
    await using cache = await open()
    if (turn === 0) {
      const upload = { name: 'a.img', size_bytes: 9, sha256: null, version: '1' }
      await cache.uploads.create(upload)
      await cache.captures.begin(
        { name: 'b.img.zst', source: SOURCE },
        { token: 't', order: 'order-1', issuedAt: 1 },
      )
    }
    for (const moved of MOVES) {
      clock.years = moved
      clock.elapsed += HOUR / 2
      await cache.uploads.sweep()
      await cache.captures.sweep()
    }
    const kept = [cache.uploads.list().length, cache.captures.list().length]
    assert.equal(kept, [1, 1], `start ${turn}`)
  }
  // 12.5 hours of silence so far, in five processes.
  await using cache = await open()
  clock.elapsed += 12 * HOUR
  await cache.uploads.sweep()
  await cache.captures.sweep()
  assert.equal([cache.uploads.list().length, cache.captures.list().length], [0, 0])
})

test('what machines are bound to stays so, and the least recently used image goes first', async () => {
  await using folder = await makeFolder()
  await using source = await startHostileServer((request, response) =>
    sendFile(makeBytes(100_000, Number(request.url?.split('/')[1])), request, response),
  )
  const src = (seed: number) => `${source.origin}/${seed}/x.img`
  const clock = { years: 0 }
  const now = () => new Date(START + clock.years * YEAR)
  const ref = refOf(src(1))
  {
    await using cache = await openCache(folder.path, { maxBytes: 350_000, now })
    await bring(cache, { name: 'bound', src: src(1) })
    await cache.pin('a-server', [ref.ok ? ref.value : ''])
    clock.years = 30
    await bring(cache, { name: 'ahead', src: src(2) })
    clock.years = -20
    await bring(cache, { name: 'newer', src: src(3) })
    await cache.pin('another', [])
    await bring(cache, { name: 'n4', src: src(4) })
    const states = cache.rows().map(({ entry, state }) => `${entry.name} ${state}`)
    assert.equal(states, ['ahead absent', 'bound ready', 'n4 ready', 'newer ready'])
  }
  clock.years = 30
  await using cache = await openCache(folder.path, { maxBytes: 350_000, now })
  await bring(cache, { name: 'n5', src: src(5) })
  assert.ok(cache.rows().find(({ entry }) => entry.name === 'bound')?.isPinned)
})

test.run()
