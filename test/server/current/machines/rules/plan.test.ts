/** Plans: when, of which image and disk, and as which JSON ("Plan", "Wizard plan modes"). */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderPlan } from '#server/current/machines/rules/plan.ts'
import { parsePlan } from '#flasher/order/rules/plan.ts'
import {
  createFixture,
  diskOf,
  entryOf,
  PXE_RULES,
  REF,
} from '#test/support/server/machine-fixture.ts'

const test = suite('plans')

const BASE = 'http://10.0.0.1:8080'
const FLASH = { bty_image_ref: REF, boot_mode: 'flasher-flash-once', target_disk_serial: 'S1' }

const ROWS = [
  [{}, 'exit', 'ipxe-exit'],
  [{ boot_mode: 'flasher-tui' }, 'interactive', 'wizard'],
  [{ boot_mode: 'flasher-inventory' }, 'inventory', 'list-disks'],
  [{ boot_mode: 'flasher-flash-once' }, 'exit', 'no-image'],
  [{ boot_mode: 'flasher-flash-always', target_disk_serial: 'S1' }, 'exit', 'no-image'],
  [{ ...FLASH, target_disk_serial: null }, 'interactive', 'no-target'],
  [{ ...FLASH, bty_image_ref: 'e'.repeat(64) }, 'interactive', 'unknown-image'],
  [FLASH, 'flash', 'flash'],
  [{ ...FLASH, boot_mode: 'flasher-flash-always' }, 'flash', 'flash'],
] as const

for (const [body, mode, rule] of ROWS) {
  test(`${JSON.stringify(body)} is ${mode}`, () => {
    const fixture = createFixture()
    fixture.put(body)
    const ruling = fixture.plan()
    assert.equal([ruling.plan.mode, ruling.rule], [mode, rule])
  })
}

const GIB = 2 ** 30
const DISKS = [
  ['no inventory yet: as assigned', null, {}, 'flash'],
  ['exactly one', [diskOf('S2'), diskOf('S1')], {}, 'flash'],
  ['blanks around the serial', [diskOf(' S1 ')], {}, 'flash'],
  ['an empty machine', [], {}, 'disk-missing'],
  ['another disk', [diskOf('S2')], {}, 'disk-missing'],
  ['another case', [diskOf('s1')], {}, 'disk-missing'],
  ['two with one serial', [diskOf('S1'), diskOf('S1')], {}, 'disk-ambiguous'],
  ['a read-only one', [diskOf('S1', { readonly: true })], {}, 'disk-read-only'],
  ['a raw image that fits', [diskOf('S1', { size_bytes: GIB })], { format: 'img' }, 'flash'],
  [
    'a raw image one byte too big',
    [diskOf('S1', { size_bytes: GIB - 1 })],
    { format: 'img' },
    'disk-too-small',
  ],
  ['a packed image that may fit', [diskOf('S1', { size_bytes: GIB - 512 })], {}, 'flash'],
  ['a packed image that cannot', [diskOf('S1', { size_bytes: GIB / 2 })], {}, 'disk-too-small'],
  [
    'a qcow2, which may hold more than its disk',
    [diskOf('S1', { size_bytes: GIB / 2 })],
    { format: 'qcow2' },
    'flash',
  ],
  ['an image of unknown size', [diskOf('S1', { size_bytes: 1 })], { sizeBytes: null }, 'flash'],
] as const

for (const [title, disks, image, rule] of DISKS) {
  test(`${title}: ${rule}`, () => {
    const fixture = createFixture({
      findImage: (ref) => entryOf(ref, { sizeBytes: GIB, ...image }),
    })
    fixture.put(FLASH)
    if (disks !== null) fixture.disks(...disks)
    const ruling = fixture.plan()
    assert.is(ruling.rule, rule)
    assert.is(ruling.mismatch?.why ?? 'flash', rule)
    assert.is(ruling.plan.mode, rule === 'flash' ? 'flash' : 'interactive')
    assert.is(fixture.machine.cycle.planned, rule === 'flash')
  })
}

test('disks without a serial are known by their WWN, else by where they are plugged in', () => {
  for (const [target, disk] of [
    ['wwn:0x5000', diskOf(null, { wwn: '0x5000', by_path: 'pci-1' })],
    ['path:pci-1', diskOf('', { wwn: ' ', by_path: 'pci-1' })],
  ] as const) {
    const fixture = createFixture()
    fixture.disks(disk, diskOf(null))
    fixture.put({ ...FLASH, target_disk_serial: target })
    const { plan } = fixture.plan()
    assert.ok(plan.mode === 'flash')
    assert.is(plan.serial, target)
  }
})

test('the JSON is flat and holds itself under plan, keys in the deployed order', () => {
  const image = entryOf(REF)
  const flash = {
    mode: 'flash',
    image,
    serial: 'S1',
    registerUefiBoot: false,
    grow: false,
  } as const
  const flat = {
    mode: 'flash',
    image: image.url,
    target_disk_serial: 'S1',
    name: 'debian.img.zst',
    disk_image_sha: 'c'.repeat(64),
    format: 'img.zst',
    // Deployed clients pass by what they do not know.
    size_bytes: 1000,
  }
  assert.is(JSON.stringify(renderPlan(flash, BASE)), JSON.stringify({ ...flat, plan: flat }))
  const unknown = { ...flash, image: { ...image, sha256: null, format: '', sizeBytes: null } }
  assert.equal(Object.keys(renderPlan(unknown, BASE)), [
    'mode',
    'image',
    'target_disk_serial',
    'name',
    'plan',
  ])
  assert.is(renderPlan({ ...flash, registerUefiBoot: true }, BASE)['register_uefi_boot'], true)
  assert.is('grow' in renderPlan(flash, BASE), false)
  assert.is(renderPlan({ ...flash, grow: true }, BASE)['grow'], true)
  const catalog = `${BASE}/catalog.toml`
  const wizard = { mode: 'interactive', catalog }
  assert.equal(renderPlan({ mode: 'interactive', reason: null }, BASE), { ...wizard, plan: wizard })
  assert.is(renderPlan({ mode: 'interactive', reason: 'Why.' }, BASE)['reason'], 'Why.')
  assert.equal(renderPlan({ mode: 'inventory' }, BASE), {
    mode: 'inventory',
    plan: { mode: 'inventory' },
  })
  assert.is(renderPlan({ mode: 'exit', reason: 'Why.' }, BASE)['mode'], 'exit')
})

const flashOf = (url: string) => ({
  mode: 'flash' as const,
  image: { ...entryOf(REF), url },
  serial: 'S1',
  registerUefiBoot: false,
  grow: false,
})

const imageOf = (url: string, base: string) => renderPlan(flashOf(url), base)['image']

test('an image of a cache beside the server is at the host by which the machine came', () => {
  assert.is(imageOf('http://127.0.0.1:8081/b/x/y', BASE), 'http://10.0.0.1:8081/b/x/y')
  assert.is(
    imageOf('http://localhost:8081/b/x/y', 'http://[fd00::1]'),
    'http://[fd00::1]:8081/b/x/y',
  )
  assert.is(imageOf('http://cache:8081/b/x/y', BASE), 'http://cache:8081/b/x/y')
  assert.is(imageOf('oras://registry/x:1', BASE), 'oras://registry/x:1')
})

test('only flash-always asks for the one-shot boot entry, and only with the setting', () => {
  const rows = [
    ['flasher-flash-always', true, true],
    ['flasher-flash-always', false, false],
    ['flasher-flash-once', true, false],
  ] as const
  for (const [boot_mode, boot_disk_once_after_flash, asks] of rows) {
    const fixture = createFixture({ settings: { ...PXE_RULES, boot_disk_once_after_flash } })
    fixture.put({ ...FLASH, boot_mode })
    const { plan } = fixture.plan()
    assert.is(plan.mode === 'flash' && plan.registerUefiBoot, asks)
  }
})

test('flash.delta and a trusted index reach the client', () => {
  const fixture = createFixture({ settings: { ...PXE_RULES, delta: true } })
  fixture.put(FLASH)
  const { plan } = fixture.plan()
  assert.ok(plan.mode === 'flash')
  const image = { ...plan.image, indexSha256: 'ef'.repeat(32) }
  const document = renderPlan({ ...plan, image }, 'http://s')
  assert.equal([document['delta'], document['index_sha256']], [true, 'ef'.repeat(32)])
  const read = parsePlan(document)
  assert.ok(read.ok && read.value.mode === 'flash')
  assert.equal([read.value.delta, read.value.indexSha256], [true, 'ef'.repeat(32)])
  const plain = createFixture()
  plain.put(FLASH)
  assert.is('delta' in renderPlan(plain.plan().plan, 'http://s'), false)
})

test.run()
