/** `/channels`: added, moved and removed by those who see every machine, and carried like all of the state. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { fileSource } from '#engine/catalog/rules/cache-entry.ts'
import { addPerson, asForm, createCurrentServer } from '#test/support/people/current-server.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { makeFolder, serveCache, TOKEN, until } from '#test/support/server/image-cache.ts'

const test = suite('/channels')
const MAC = '52:54:00:00:00:01'

const known = (src: string): string => {
  const ref = refOf(src)
  assert.ok(ref.ok)
  return ref.value
}
const NAMES = ['debian-2.4.30.img', 'debian-2.4.31.img']
const [OLD = '', NEW = ''] = NAMES.map((name) => known(fileSource(name)))
/** It has the signature of an MBR. */
const DISK = Buffer.alloc(1_048_576)
DISK.writeUInt16LE(0xaa55, 510)
const GONE = 'f'.repeat(64)

async function open() {
  const stack = new AsyncDisposableStack()
  const folder = stack.use(await makeFolder())
  const served = stack.use(await serveCache(folder.path))
  for (const name of NAMES) await writeFile(join(folder.path, name), DISK)
  await until(() => served.cache.rows().filter(({ state }) => state === 'ready').length === 2)
  const server = stack.use(
    await createCurrentServer({
      FLASHER_WITHCACHE_URL: served.base,
      FLASHER_WITHCACHE_TOKEN: TOKEN,
    }),
  )
  const operator = await server.operator()
  await operator('/admin/cache/refresh', { method: 'POST' })
  const put = (ask: typeof operator, ref: string, more: object = {}, headers: HeadersInit = {}) => {
    const init = asJson({ bty_image_ref: ref, ...more }, 'PUT')
    const all = new Headers(init.headers)
    for (const [name, value] of new Headers(headers)) all.set(name, value)
    return ask('/channels/stable', { ...init, headers: all })
  }
  return { served, server, operator, put, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a channel is added, moved with one event, and removed', async () => {
  await using lab = await open()
  const { operator, put } = lab
  const added = await put(operator, OLD, { note: ' for all racks ' })
  assert.is(added.status, 200)
  const { moved_at, ...channel } = await added.json()
  assert.equal(channel, {
    name: 'stable',
    bty_image_ref: OLD,
    image: 'debian-2.4.30.img',
    note: 'for all racks',
    moved_by: 'operator',
  })
  assert.is(Number.isNaN(Date.parse(moved_at)), false)
  assert.is((await put(operator, NEW, { note: 'tested' })).status, 200)
  assert.is((await put(operator, NEW, { note: 'well tested' })).status, 200)
  assert.equal(
    (await readJson(operator('/channels'))).map(({ image, note }: Record<string, unknown>) => [
      image,
      note,
    ]),
    [['debian-2.4.31.img', 'well tested']],
  )
  assert.is((await operator('/channels/stable', { method: 'DELETE' })).status, 204)
  assert.is((await operator('/channels/stable')).status, 404)
  const { events } = await readJson(operator('/events?subject_id=stable'))
  assert.equal(
    events.map(({ kind, summary }: Record<string, unknown>) => [kind, summary]).toReversed(),
    [
      ['settings.channel.added', 'The channel stable was added; it points to debian-2.4.30.img'],
      [
        'settings.channel.moved',
        'The channel stable was moved from debian-2.4.30.img to debian-2.4.31.img',
      ],
      ['settings.channel.noted', 'The note of the channel stable was saved'],
      [
        'settings.channel.removed',
        'The channel stable was removed; it pointed to debian-2.4.31.img',
      ],
    ],
  )
})

test('an image that is not there is refused, and so is an edit of something else than was seen', async () => {
  await using lab = await open()
  const { operator, put } = lab
  assert.is((await put(operator, GONE)).status, 422)
  assert.is((await put(operator, OLD, { notes: '' })).status, 422)
  const bad = await operator('/channels/a%20b', asJson({ bty_image_ref: OLD }, 'PUT'))
  assert.is(bad.status, 422)
  assert.is((await put(operator, OLD, {}, { 'if-match': '*' })).status, 412, 'there is none yet')
  const etag = (await put(operator, OLD)).headers.get('etag') ?? ''
  assert.is((await operator('/channels/stable')).headers.get('etag'), etag)
  assert.is((await put(operator, NEW, {}, { 'if-none-match': '*' })).status, 412, 'it is there')
  assert.is((await put(operator, NEW, {}, { 'if-match': etag })).status, 200)
  assert.is((await put(operator, OLD, {}, { 'if-match': etag })).status, 412)
  const stale = { method: 'DELETE', headers: { 'if-match': etag } }
  assert.is((await operator('/channels/stable', stale)).status, 412)
  assert.is((await readJson(operator('/channels/stable'))).bty_image_ref, NEW)
})

test('it is moved by those who operate every machine, and read by all', async () => {
  await using lab = await open()
  const { server, operator, put } = lab
  const otto = await addPerson(server, 'otto', 'operate')
  const lea = await addPerson(server, 'lea', 'look')
  const sam = await addPerson(server, 'sam', 'operate', ['lab'])
  assert.is((await put(otto, OLD)).status, 200)
  assert.is((await readJson(operator('/channels/stable'))).moved_by, 'person:otto')
  for (const ask of [lea, sam]) {
    assert.is((await put(ask, NEW)).status, 403)
    assert.is((await ask('/channels/stable', { method: 'DELETE' })).status, 403)
    assert.is((await readJson(ask('/channels'))).length, 1)
  }
  assert.is((await put(server.request, NEW)).status, 401)
})

test('machines are armed with it, alone and together, and keep their image when it moves', async () => {
  await using lab = await open()
  const { operator, put, served } = lab
  await put(operator, OLD)
  const flash = { boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }
  const machine = () => readJson(operator(`/machines/${MAC}`))
  const made = await operator(`/machines/${MAC}`, asJson({ ...flash, channel: 'stable' }, 'PUT'))
  assert.is(made.status, 200)
  await put(operator, NEW)
  const { bty_image_ref, channel } = await machine()
  assert.equal([bty_image_ref, channel], [OLD, 'stable'])
  const refused = await operator('/channels/stable', { method: 'DELETE' })
  assert.equal(
    [refused.status, (await refused.json()).detail],
    [409, '1 machines are armed with stable'],
  )
  const bulk = { action: 'flash', macs: [MAC], parameters: { channel: 'stable' } }
  assert.is((await readJson(operator('/machines/bulk', asJson(bulk)))).done, 1)
  assert.is((await machine()).bty_image_ref, NEW)
  // The cache keeps what a channel points to.
  await put(operator, OLD)
  await until(() => served.cache.rows().every(({ isPinned }) => isPinned))
  assert.equal(
    served.cache
      .rows()
      .map(({ machines }) => machines)
      .toSorted(),
    [0, 1],
  )
  await operator('/machines/bulk', asJson({ action: 'disarm', macs: [MAC] }))
  assert.is((await operator('/channels/stable', { method: 'DELETE' })).status, 204)
  const armed = await operator(`/machines/${MAC}/flash`, asJson({}))
  assert.match(JSON.stringify(await armed.json()), 'no channel stable')
})

test('the question before a flash is about what the channel points to, and holds for that alone', async () => {
  await using lab = await open()
  const { operator, put, server } = lab
  await put(operator, OLD)
  const flash = { boot_mode: 'flasher-flash-once', target_disk_serial: 'S1234' }
  await operator(`/machines/${MAC}`, asJson({ ...flash, channel: 'stable' }, 'PUT'))
  await put(operator, NEW)
  const path = `/ui/machines/${MAC}/do/flash`
  const post = (fields: Readonly<Record<string, string>>) => operator(path, asForm(fields))
  const asked = await (await post({ confirm: 'ask' })).text()
  assert.match(asked, 'debian-2.4.31.img')
  assert.match(asked, '(stable)')
  const was = (/name="was" value="([^"]*)"/.exec(asked)?.[1] ?? '').replaceAll('&quot;', '"')
  await put(operator, OLD)
  const again = await (await post({ confirm: '1234', was })).text()
  assert.match(again, 'debian-2.4.30.img', 'it moved meanwhile, so it is asked again')
  await put(operator, NEW)
  assert.is((await post({ confirm: '1234', was })).status, 303)
  assert.is((await readJson(operator(`/machines/${MAC}`))).bty_image_ref, NEW)
  // Once it is done, its page does not call the image that the channel got since the one before.
  for (const step of ['', '/plan']) await server.request(`/pxe/${MAC}${step}`)
  await server.request(`/pxe/${MAC}/done`, { method: 'POST' })
  const readPage = async () => await (await operator(`/ui/machines/${MAC}`)).text()
  assert.match(await readPage(), 'As before…')
  await put(operator, OLD)
  assert.match(await readPage(), 'With the new image of <bdi>stable</bdi>…')
})

test('what failed is tried again with the image of its batch, wherever the channel points to by now', async () => {
  await using lab = await open()
  const { operator, put, server } = lab
  await put(operator, OLD)
  const flash = { boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }
  await operator(`/machines/${MAC}`, asJson({ ...flash, bty_image_ref: NEW }, 'PUT'))
  const bulk = { action: 'flash', macs: [MAC], parameters: { channel: 'stable' } }
  const { batch } = await readJson(operator('/machines/bulk', asJson(bulk)))
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/plan`)
  await server.request(`/pxe/${MAC}/status`, asJson({ status: 'failed', reason: 'disk full' }))
  await put(operator, NEW)
  const retry = operator(`/batches/${batch}/retry`, { method: 'POST' })
  assert.is((await readJson(retry)).done, 1)
  const { bty_image_ref, channel } = await readJson(operator(`/machines/${MAC}`))
  assert.equal([bty_image_ref, channel], [OLD, 'stable'])
  assert.is((await readJson(operator(`/batches/${batch}`))).counts.waiting, 1)
})

test.run()
