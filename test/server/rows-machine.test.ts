/** Rows of the current line's specification about a machine: its fields, and what each contact does to them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { entryOf, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('rows of a machine')
const MAC = '52:54:00:12:34:56'
const FLASH = { bty_image_ref: REF, target_disk_serial: 'S1' }

const diskOf = (tran: string | null, n: number) => ({
  path: `/dev/sd${n}`,
  size: n === 0 ? null : '500G',
  vendor: n === 0 ? null : 'ATA',
  model: n === 0 ? null : 'Disk 9',
  serial: n === 0 ? null : `S${n}`,
  tran,
  removable: tran === 'usb',
  readonly: n === 0,
})
const DISKS = [null, 'sata', 'nvme', 'usb'].map(diskOf)

async function open() {
  let time = Date.parse('2026-05-01T00:00:00.000Z')
  const server = await createTestServer({ now: () => new Date(time), catalog: [entryOf(REF)] })
  const ask = await server.operator()
  const machine = async () => await (await ask(`/machines/${MAC}`)).json()
  return {
    server,
    ask,
    machine,
    /** An hour later; returns that time. */
    later: () => new Date((time += 3_600_000)).toISOString(),
    contact: (path: string, init: RequestInit & { readonly ip?: string } = {}) =>
      server.request(`/pxe/${MAC}${path}`, { ip: '192.0.2.7', ...init }),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('each contact sets its fields and leaves all others', async () => {
  await using fixture = await open()
  const { ask, machine, later, contact } = fixture
  const made = later()
  const put = { boot_mode: 'flasher-tui', sanboot_drive: '0x81' }
  await ask(`/machines/${MAC}`, asJson(put, 'PUT'))
  const before = await machine()
  const nothing = [before.discovered_at, before.last_seen_at, before.last_seen_ip]
  assert.equal([...nothing, before.known_disks_at, before.last_flashed_at], Array(5).fill(null))
  assert.equal([before.created_at, before.updated_at], [made, made])

  const first = later()
  await contact('')
  const seen = { discovered_at: first, last_seen_at: first, last_seen_ip: '192.0.2.7' }
  const { updated_at: _, ...discovered } = await machine()
  assert.equal(discovered, { ...discovered, ...put, ...seen, created_at: made, known_disks: null })

  const second = later()
  await contact('', { ip: '192.0.2.8' })
  const again = { ...discovered, last_seen_at: second, last_seen_ip: '192.0.2.8' }
  assert.equal(await machine(), { ...again, updated_at: (await machine()).updated_at })

  const third = later()
  await contact('/inventory', asJson({ disks: DISKS }))
  const told = await machine()
  assert.equal(
    [told.known_disks, told.known_disks_at, told.boot_mode],
    [DISKS, third, 'flasher-tui'],
  )
  assert.equal(await (await ask(`/machines/${MAC}/disks.json`)).json(), DISKS)

  const fourth = later()
  await contact('/done', { method: 'POST' })
  const done = await machine()
  assert.equal(
    [done.last_flashed_at, done.boot_mode, done.known_disks_at],
    [fourth, 'flasher-tui', third],
  )

  await ask(`/machines/${MAC}`, asJson({ labels: ['b', 'a'] }, 'PUT'))
  const replaced = await machine()
  assert.equal(
    [replaced.boot_mode, replaced.sanboot_drive, replaced.labels, replaced.last_flashed_at],
    ['ipxe-exit', null, ['a', 'b'], fourth],
  )
})

const isLive = (script: string) => /^kernel /m.test(script)

for (const [boot_mode, flashesAgain] of [
  ['flasher-flash-once', false],
  ['flasher-flash-always', true],
] as const) {
  test(`${boot_mode}: the script before and after the end of a flash`, async () => {
    await using fixture = await open()
    const { ask, machine, contact } = fixture
    const script = async () => await (await contact('')).text()
    await ask(`/machines/${MAC}`, asJson({ boot_mode }, 'PUT'))
    assert.not.ok(isLive(await script()), 'without image and disk')
    await ask(`/machines/${MAC}`, asJson({ ...FLASH, boot_mode }, 'PUT'))
    const text = await script()
    assert.ok(isLive(text))
    assert.match(text, ` flasher.server=http://flasher.test:8080 flasher.mac=${MAC} `)
    assert.is((await (await contact('/plan')).json()).plan.mode, 'flash')
    assert.is((await contact('/done', { method: 'POST' })).status, 204)
    assert.is((await machine()).boot_mode, boot_mode)
    for (const _ of [1, 2]) assert.is(isLive(await script()), flashesAgain)
  })
}

test('an unknown machine posts its disks once and boots its disk from then on', async () => {
  await using fixture = await open()
  const { machine, later, contact } = fixture
  const script = async () => await (await contact('')).text()
  const at = later()
  assert.ok(isLive(await script()))
  const { discovered_at, last_seen_at, last_seen_ip, bty_image_ref } = await machine()
  assert.equal(
    [discovered_at, last_seen_at, last_seen_ip, bty_image_ref],
    [at, at, '192.0.2.7', null],
  )
  assert.equal((await (await contact('/plan')).json()).plan, { mode: 'inventory' })
  await contact('/inventory', asJson({ disks: DISKS }))
  assert.match(await script(), /^sanboot --no-describe --drive 0x80 \|\| exit$/m)
  assert.is((await machine()).boot_mode, 'flasher-inventory')
})

test('boot_mode: five values and no other', async () => {
  await using fixture = await open()
  const modes = ['ipxe-exit', 'flasher-flash-always', 'flasher-flash-once', 'flasher-tui']
  for (const boot_mode of [...modes, 'flasher-inventory', 'flash', 'tui', 'IPXE-EXIT', '', null]) {
    const { status } = await fixture.ask(`/machines/${MAC}`, asJson({ boot_mode }, 'PUT'))
    const isMode = modes.includes(String(boot_mode)) || boot_mode === 'flasher-inventory'
    assert.is(status, isMode ? 200 : 422, String(boot_mode))
  }
})

test('labels: what a set of them may hold', async () => {
  await using fixture = await open()
  const put = async (labels: readonly string[]) =>
    (await fixture.ask(`/machines/${MAC}`, asJson({ labels }, 'PUT'))).status
  const rows: readonly (readonly [number, readonly string[]])[] = [
    [200, Array.from({ length: 16 }, (_, n) => `l${n}`)],
    [422, Array.from({ length: 17 }, (_, n) => `l${n}`)],
    [200, ['a'.repeat(64)]],
    [422, ['a'.repeat(65)]],
    ...['A', '0', 'a b', 'a-b', 'a_b', 'a.b', 'Z-', '9 _.-'].map((one) => [200, [one]] as const),
    ...['', ' a', '-a', '_a', '.a', 'a/b', 'a,b', 'a\tb', 'ä'].map((one) => [422, [one]] as const),
  ]
  for (const [status, labels] of rows) assert.is(await put(labels), status, JSON.stringify(labels))
})

test.run()
