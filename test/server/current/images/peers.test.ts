/** `POST /pxe/{mac}/peers`: who learns of neighbours, and who does not. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'
import { entryOf, MAC } from '#test/support/terminal/remote-fixture.ts'

const test = suite('neighbours of a machine')
const CACHE = 'http://10.0.0.2:8081'
const SHA256 = '1'.repeat(64)
const ENTRY = entryOf(`${CACHE}/b/dG9rZW4/a.img.zst`, {
  sha256: SHA256,
  indexSha256: '2'.repeat(64),
  format: 'img.zst',
})
const READER = {
  visit: '6f1c9f4e-6f0e-4d0c-9d6a-0b8c1f6f8a11',
  sha256: SHA256,
  read_bytes: 0,
  window_bytes: 1 << 26,
  serves: true,
}
const FEATURES = 'first-boot,capture,disk-id,sources,peers'

interface Options {
  readonly enabled?: boolean
  readonly entry?: CatalogEntry
  readonly sites?: readonly string[]
}

async function openSite({ enabled = true, entry = ENTRY, sites = ['rack a'] }: Options = {}) {
  const server = await createTestServer({
    catalog: [entry],
    cacheUrl: CACHE,
    env: { FLASHER_PEERS_ENABLED: String(enabled), FLASHER_PEERS_SITES: sites.join(',') },
  })
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const armed = { boot_mode: 'flasher-flash-once', bty_image_ref: entry.ref, labels: ['Rack A'] }
  await ask(`/machines/${MAC}`, asJson({ ...armed, target_disk_serial: 'S1' }, 'PUT'))
  const disks = [{ path: '/dev/sda', size_bytes: 1e10, serial: 'S1', removable: false }]
  const plan = async (features = FEATURES) => {
    await server.request(`/pxe/${MAC}/inventory`, asJson({ disks }))
    const answer = await server.request(`/pxe/${MAC}/plan?features=${features}`)
    return await answer.json()
  }
  const join = (more: object = {}) =>
    server.request(`/pxe/${MAC}/peers`, asJson({ ...READER, ...more }))
  return { server, plan, join, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test('the plan names them to a client that knows them, and to no other one', async () => {
  await using site = await openSite()
  assert.is((await site.plan()).peers, true)
  assert.is((await site.plan('sources')).peers, undefined)
})

for (const [why, options] of [
  ['it is off', { enabled: false }],
  ['its image has no index', { entry: { ...ENTRY, indexSha256: null } }],
  ['its digest is not known', { entry: { ...ENTRY, sha256: null } }],
  ['its image is elsewhere', { entry: { ...ENTRY, url: 'http://example.org/a.img.zst' } }],
  ['it is in no site', { sites: ['rack b'] }],
] as const) {
  test(`neither plan nor route name any where ${why}`, async () => {
    await using site = await openSite(options)
    assert.is((await site.plan()).peers, undefined)
    assert.is((await site.join()).status, 404)
  })
}

test('a machine that is not flashed, or whose address is not known, has none', async () => {
  await using site = await openSite()
  assert.is((await site.join()).status, 404)
  await site.plan()
  assert.is((await site.join()).status, 404)
})

test('what is no question is refused before it is read', async () => {
  await using site = await openSite()
  await site.plan()
  assert.is((await site.join({ visit: 'x' })).status, 422)
  assert.is((await site.join({ read_bytes: -1 })).status, 422)
  assert.is((await site.join({ more: 'x'.repeat(2000) })).status, 413)
  const unknown = await site.server.request('/pxe/52:54:00:00:00:99/peers', asJson(READER))
  assert.is(unknown.status, 404)
})

test.run()
