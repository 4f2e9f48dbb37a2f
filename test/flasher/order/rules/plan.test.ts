import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { findDisk, findRenewed, parsePlan } from '#flasher/order/rules/plan.ts'
import { renderPlan } from '#server/current/machines/rules/plan.ts'

const test = suite('a plan as an order')

const FLASH = {
  mode: 'flash',
  image: 'http://cache.lan:8081/b/aHR0/deb.img.gz',
  target_disk_serial: 'S1',
}
const SHA = 'Ab'.repeat(32)

test('reads what the deployed servers send', () => {
  const plan = { ...FLASH, name: 'deb.img.gz', format: 'img.gz', disk_image_sha: `sha256:${SHA}` }
  assert.equal(parsePlan(plan), {
    ok: true,
    value: {
      mode: 'flash',
      image: FLASH.image,
      disk: 'S1',
      name: 'deb.img.gz',
      format: 'img.gz',
      sha256: SHA.toLowerCase(),
      registerUefiBoot: false,
      grow: false,
      firstBoot: null,
      delta: false,
      indexSha256: null,
    },
  })
})

test('reads a plan that only the wrapper holds', () => {
  const read = parsePlan({ plan: { ...FLASH, register_uefi_boot: true } })
  assert.is(read.ok && read.value.mode === 'flash' && read.value.registerUefiBoot, true)
})

test('reads what our own server renders', () => {
  const base = 'http://lab:8080'
  for (const plan of [
    { mode: 'interactive', reason: 'look at it' },
    { mode: 'inventory' },
    { mode: 'exit', reason: 'done before' },
  ] as const) {
    const read = parsePlan(renderPlan(plan, base))
    assert.is(read.ok && read.value.mode, plan.mode)
    if (read.ok && 'reason' in plan && 'reason' in read.value) {
      assert.is(read.value.reason, plan.reason)
    }
  }
})

function sourcesOf(sources: unknown) {
  const read = parsePlan({ ...FLASH, sources })
  return read.ok && read.value.mode === 'flash' ? read.value.sources : null
}

test('sources that are none are left out, and no more than eight are read', () => {
  const url = 'http://cache.rack:8081/b/aHR0/deb.img.gz'
  assert.equal(sourcesOf([{ url: ` ${url} `, later: 1 }]), [url])
  const hostile = [
    null,
    'http://a/',
    { url: '/dev/sda' },
    { url: 'file:///etc' },
    { url: 'x'.repeat(5000) },
  ]
  assert.equal(sourcesOf([...hostile, { url }]), [url])
  assert.is(sourcesOf(hostile), undefined)
  assert.is(sourcesOf('http://a/'), undefined)
  assert.is(sourcesOf(Array.from({ length: 500 }, () => ({ url })))?.length, 8)
})

test('a size that is none costs only the check by it', () => {
  const sizes = [1000, 0, -1, 1.5, '1000', 2 ** 60].map((size_bytes) => {
    const read = parsePlan({ ...FLASH, size_bytes })
    return read.ok && read.value.mode === 'flash' ? read.value.sizeBytes : 'refused'
  })
  assert.equal(sizes, [1000, undefined, undefined, undefined, undefined, undefined])
})

const BAD: readonly (readonly [string, unknown, RegExp])[] = [
  ['null', null, /not a JSON object/],
  ['a list', [FLASH], /not a JSON object/],
  ['a text', 'flash', /not a JSON object/],
  ['an empty object', {}, /names no mode/],
  ['a mode of another kind', { mode: 1 }, /names no mode/],
  ['an unknown mode', { mode: 'ram\u001b[2Jboot' }, /unknown mode ram\\x1b\[2Jboot/],
  ['a mode of every object', { mode: 'constructor' }, /unknown mode/],
  ['no image', { ...FLASH, image: '  ' }, /no image/],
  ['an endless image', { ...FLASH, image: `http://a/${'b'.repeat(5000)}` }, /no image/],
  ['a file of this machine', { ...FLASH, image: '/etc/shadow' }, /not at the address of a server/],
  ['a file URL', { ...FLASH, image: 'file:///etc/shadow' }, /not at the address of a server/],
  ['standard input', { ...FLASH, image: '-' }, /not at the address of a server/],
  ['no disk', { ...FLASH, target_disk_serial: null }, /no disk/],
  ['an empty disk', { ...FLASH, target_disk_serial: ' ' }, /no disk/],
  ['half a digest', { ...FLASH, disk_image_sha: 'abc' }, /not a SHA-256: abc/],
  ['a digest of another kind', { ...FLASH, disk_image_sha: 7 }, /not a SHA-256/],
]
for (const [what, document, reason] of BAD) {
  test(`refuses ${what}`, () => {
    const read = parsePlan(document)
    assert.match(read.ok ? '' : read.refusal, reason)
  })
}

test('an unknown format is left to the name, a catalog of this machine to the server', () => {
  const flash = parsePlan({ ...FLASH, format: 'vmdk' })
  assert.is(flash.ok && flash.value.mode === 'flash' ? flash.value.format : '', null)
  const wizard = parsePlan({ mode: 'interactive', catalog: 'file:///etc/shadow' })
  assert.is(wizard.ok && wizard.value.mode === 'interactive' ? wizard.value.catalog : '', null)
})

test('words of the server are short and harmless', () => {
  const reason = `\u001b]0;owned\u0007${'x'.repeat(10_000)}`
  const read = parsePlan({ mode: 'exit', reason })
  const shown = read.ok && read.value.mode === 'exit' ? (read.value.reason ?? '') : ''
  assert.match(shown, /^\\x1b\]0;owned\\x07x+$/)
  assert.is(shown.length < 500, true)
})

const disk = (path: string, names: Partial<InventoryDisk>): InventoryDisk => ({
  path,
  size: '1G',
  vendor: null,
  model: null,
  serial: null,
  tran: null,
  removable: false,
  readonly: false,
  ...names,
})
const DISKS = [
  disk('/dev/sda', { serial: 'S1', wwn: '0x5000' }),
  disk('/dev/sdb', { serial: 'S2' }),
  disk('/dev/sdc', { serial: 'S2' }),
  disk('/dev/vda', { wwn: '0x6000' }),
  disk('/dev/vdb', { by_path: 'pci-0000:00:05.0' }),
  disk('/dev/vdc', {}),
]

test('finds a disk by serial, by WWN, by path', () => {
  const found = ['S1', 'wwn:0x6000', 'path:pci-0000:00:05.0'].map((identity) => {
    const one = findDisk(DISKS, identity)
    return one.ok ? one.value.path : one.refusal
  })
  assert.equal(found, ['/dev/sda', '/dev/vda', '/dev/vdb'])
})

const words = (identity: string, disks = DISKS) => {
  const one = findDisk(disks, identity)
  return one.ok ? one.value.path : one.refusal
}

test('takes no disk that is not exactly one, nor one by a name it does not go by', () => {
  assert.match(words('S2'), /^2 disks .* S2: \/dev\/sdb, \/dev\/sdc\.$/)
  assert.match(words('wwn:0x5000'), /is not in this machine: it has \/dev\/sda S1, /)
  assert.match(words('s1'), /is not in this machine/)
  assert.match(words('unnamed'), /is not in this machine/)
  assert.match(words('S1', []), /it has no disks/)
})

function order(plan: object) {
  const parsed = parsePlan({ mode: 'flash', target_disk_serial: 'S', ...plan })
  if (!parsed.ok) throw new Error(parsed.refusal)
  return parsed.value
}

test('an address is renewed by a newer plan of the same bytes alone', () => {
  const image = 'http://c:8081/b/dG9r/a.img'
  const [digest, other] = ['a'.repeat(64), 'b'.repeat(64)]
  const location = 'https://s3/lab/a.img?X-Amz-Signature=1'
  const newer = (disk_image_sha: string | null, url: string) =>
    order({ image, disk_image_sha, sources: [{ url: 'http://n/b/dG9r/a.img' }, { url }] })
  const fresh = 'https://s3/lab/a.img?X-Amz-Signature=2'
  const plan = { sha256: digest }
  assert.is(findRenewed(plan, newer(digest, fresh), location), fresh)
  assert.is(findRenewed(plan, newer(other, fresh), location), null)
  assert.is(findRenewed(plan, newer(null, fresh), location), null)
  assert.is(findRenewed(plan, newer(digest, 'https://s3/lab/b.img?x'), location), null)
  assert.is(findRenewed(plan, order({ mode: 'exit' }), location), null)
})

test.run()
