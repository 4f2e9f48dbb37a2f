/** Whether machines would start from an image of the cache: what the questions before a flash say. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { bring, makeFolder, serveCache } from '#test/support/server/image-cache.ts'
import { makeShimImage } from '#test/support/disk/shim-image.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('whether machines start from an image, before they are armed')
const MACHINES = ['52:54:00:00:00:01', '52:54:00:00:00:02'] as const
const DISK = { path: '/dev/sda', serial: 'S1', size: '10G', size_bytes: 10 << 30 }

const keysOf = (name: string) => ({
  certificates: [{ fingerprint: '0'.repeat(64), name, subject: `CN=${name}` }],
  digests: '',
  others: 0,
})

const FIRMWARE = {
  kind: 'uefi',
  processor: 'x64',
  secure_boot: true,
  allowed: keysOf('lab'),
  revoked: { certificates: [], digests: '', others: 0 },
  sbat_level: null,
}

test('one machine, and several: who would not start, why, and the way out', async () => {
  await using folder = await makeFolder()
  const image = join(folder.path, 'a.img')
  makeShimImage(image)
  const bytes = await readFile(image)
  await using source = await startHostileServer((request, response) =>
    sendFile(bytes, request, response),
  )
  await using served = await serveCache(join(folder.path, 'cache'))
  const src = `${source.origin}/a.img`
  await bring(served.cache, { src })
  await using home = await createServerHome()
  await using server = await home.start([], {
    FLASHER_ADMIN_PASSWORD: 'secret',
    FLASHER_WITHCACHE_URL: served.base,
  })
  const { cookie } = await login(server.url, 'secret')
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${server.url}${path}`, { ...init, headers })
  }
  const [entry] = await (await ask('/images')).json()
  for (const mac of MACHINES) {
    await fetch(`${server.url}/pxe/${mac}`)
    const firmware = mac === MACHINES[0] ? FIRMWARE : { ...FIRMWARE, secure_boot: false }
    const posted = await fetch(
      `${server.url}/pxe/${mac}/inventory`,
      asJson({ disks: [DISK], firmware }),
    )
    assert.is(posted.status, 204, await posted.text())
    const order = {
      bty_image_ref: entry.ref,
      target_disk_serial: 'S1',
      boot_mode: 'flasher-flash-once',
    }
    assert.is((await ask(`/machines/${mac}`, asJson(order, 'PUT'))).status, 200)
  }
  const post = async (path: string, fields: readonly (readonly [string, string])[]) => {
    const body = new URLSearchParams(fields.map(([name, value]) => [name, value]))
    return (await (await ask(path, { method: 'POST', body })).text()).replaceAll(/\s+/g, ' ')
  }
  const one = await post(`/ui/machines/${MACHINES[0]}/do/flash`, [])
  assert.match(one, 'This machine would not start from this image.')
  assert.match(one, 'the firmware trusts “lab”')
  assert.match(one, 'Turn Secure Boot off, or use another image.')
  const other = await post(`/ui/machines/${MACHINES[1]}/do/flash`, [])
  assert.not.match(other, 'would not start')
  const many = await post('/ui/machines/bulk', [
    ['action', 'flash'],
    ...MACHINES.map((mac) => ['macs', mac] as const),
  ])
  assert.match(many, '1 of 2 would not start from this image.')
  const page = await (await ask(`/ui/machines/${MACHINES[0]}`)).text()
  for (const fact of ['UEFI (x64)', 'lab', 'Revoked (dbx)']) assert.match(page, fact)

  // The same server, now with the switch.
  const strict = { FLASHER_ADMIN_PASSWORD: 'secret', FLASHER_WITHCACHE_URL: served.base }
  await server[Symbol.asyncDispose]()
  await using refusing = await home.start([], {
    ...strict,
    FLASHER_IMAGES_REQUIRE_BOOTABLE: 'true',
  })
  const session = (await login(refusing.url, 'secret')).cookie
  const call = (path: string, init: RequestInit) =>
    fetch(`${refusing.url}${path}`, {
      ...init,
      headers: { ...Object.fromEntries(new Headers(init.headers)), cookie: session },
    })
  const [bad, good] = MACHINES
  const flash = (mac: string) => call(`/machines/${mac}/flash`, asJson({}))
  const refused = await flash(bad)
  assert.is(refused.status, 409)
  assert.match(
    await refused.text(),
    /Not armed: this machine would not start from this image.*trusts “lab”.*Turn Secure Boot off/,
  )
  assert.is((await flash(good)).status, 200)
  const order = (target_disk_serial: string) => ({
    bty_image_ref: entry.ref,
    target_disk_serial,
    boot_mode: 'flasher-flash-once',
  })
  const put = (mac: string, body: object) => call(`/machines/${mac}`, asJson(body, 'PUT'))
  assert.is((await put(bad, order('S1'))).status, 200, 'the order that it has already')
  assert.is((await put(bad, { ...order('S1'), boot_mode: 'ipxe-exit' })).status, 200)
  const replaced = await put(bad, order('S1'))
  assert.is(replaced.status, 422)
  assert.match(await replaced.text(), 'Not armed')
  const mode = { action: 'mode', parameters: { boot_mode: 'flasher-flash-once' } }
  const bulk = await call('/machines/bulk', asJson({ ...mode, macs: [bad, good] }))
  assert.equal(
    (await bulk.json()).results.map(({ result }: { readonly result: string }) => result),
    ['refused', 'done'],
  )
  const form = new URLSearchParams({ ...order('S1'), confirm: 'ask', labels: '', was: '' })
  const asked = await call(`/ui/machines/${bad}`, { method: 'POST', body: form })
  assert.match(await asked.text(), 'Not armed')
  const preview = new URLSearchParams([
    ['action', 'mode'],
    ['boot_mode', 'flasher-flash-once'],
    ...MACHINES.map((mac) => ['macs', mac]),
  ])
  const shown = await call('/ui/machines/bulk', { method: 'POST', body: preview })
  assert.match(await shown.text(), 'Not armed')

  // Armed before it has said what its firmware starts.
  const early = '52:54:00:00:00:03'
  await fetch(`${refusing.url}/pxe/${early}`)
  const inventory = (body: object) =>
    fetch(`${refusing.url}/pxe/${early}/inventory`, asJson({ disks: [DISK], ...body }))
  const planOf = async () => await (await fetch(`${refusing.url}/pxe/${early}/plan`)).json()
  await inventory({})
  assert.is((await put(early, order('S1'))).status, 200)
  assert.is((await planOf()).mode, 'flash')
  await inventory({ firmware: FIRMWARE })
  const plan = await planOf()
  assert.is(plan.mode, 'interactive')
  assert.match(plan.reason, /Not flashed: this machine would not start from this image.*“lab”/)
  await inventory({ firmware: { ...FIRMWARE, secure_boot: false } })
  assert.is((await planOf()).mode, 'flash')
})

test.run()
