/** Inventories as machines post them: what is kept, dropped, refused; and records as they were stored. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAX_HARDWARE_VALUES, parseInventory } from '#engine/inventory/rules/inventory.ts'
import {
  findPicked,
  identifyDisk,
  keepPick,
  MAX_HARDWARE_BYTES,
  nameAmong,
  pickDisk,
  wantsDiskId,
} from '#engine/inventory/rules/machine.ts'
import { createMachine, parseRecord } from '#server/current/machines/rules/machine.ts'
import { createFixture, diskOf, MAC, REF } from '#test/support/server/machine-fixture.ts'

const test = suite('inventory')
const NOW = '2026-05-01T00:00:00.000Z'

const parseText = (text: string) => parseInventory(Buffer.from(text))
const parseBody = (body: unknown) => parseText(JSON.stringify(body))

function disksOf(...disks: readonly unknown[]) {
  const parsed = parseBody({ disks })
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.refusal))
  return parsed.value.disks
}

const isTaken = (body: unknown) => parseBody(body).ok

test('a disk has the eight fields, and those of our own clients where they were given', () => {
  assert.is(
    JSON.stringify(disksOf({ path: '/dev/sda', type: 'disk', mountpoints: [null] })),
    JSON.stringify([{ ...diskOf(null), size: null, tran: null }].map(({ ...disk }) => disk)),
  )
  const full = diskOf('S1', { wwn: '0x5', by_path: 'pci-0000:00:1f.2', size_bytes: 5 })
  assert.equal(disksOf(full), [full])
})

test('booleans as every lsblk has said them', () => {
  const rows = [
    [true, true],
    [1, true],
    ['1', true],
    ['true', true],
    ['Yes', true],
    [false, false],
    [0, false],
    ['0', false],
    ['off', false],
    [null, false],
    [undefined, false],
  ] as const
  for (const [said, meant] of rows) {
    assert.is(disksOf({ path: 'a', readonly: said })[0]?.readonly, meant, String(said))
  }
  for (const said of ['', 'maybe', 2, [], {}]) {
    assert.not.ok(isTaken({ disks: [{ path: 'a', removable: said }] }), JSON.stringify(said))
  }
})

test('any transport, any text within its bounds', () => {
  for (const tran of ['sas', 'mmc', 'virtio', '<script>', null, 'x'.repeat(32)]) {
    assert.is(disksOf({ path: 'a', tran })[0]?.tran, tran)
  }
  const long = {
    path: 256,
    size: 33,
    vendor: 65,
    model: 129,
    serial: 129,
    tran: 33,
  }
  for (const [field, characters] of Object.entries(long)) {
    const disk = (count: number) => ({ disks: [{ path: 'a', [field]: 'x'.repeat(count) }] })
    assert.ok(isTaken(disk(characters - 1)), field)
    assert.not.ok(isTaken(disk(characters)), field)
  }
})

test('what our own clients add is dropped where it is invalid, never refused', () => {
  const [disk] = disksOf({ path: 'a', wwn: 5, by_path: 'x'.repeat(200), size_bytes: -1 })
  assert.equal([disk?.wwn, disk?.by_path, disk?.size_bytes], [null, null, null])
})

test('refused: no disks, no path, other keys, numbers for serials', () => {
  for (const body of [
    {},
    null,
    [],
    { disks: null },
    { disks: {} },
    { disks: [{}] },
    { disks: [{ path: '' }] },
    { disks: [{ path: 'a', serial: 5 }] },
    { disks: [null] },
    { disks: [], more: 1 },
    { disks: [], lshw: 'text' },
    { disks: [], lshw: 5 },
  ]) {
    assert.not.ok(isTaken(body), JSON.stringify(body)?.slice(0, 60))
  }
})

function hardwareOf(lshw: unknown) {
  const parsed = parseBody({ disks: [{ path: 'a' }], lshw })
  assert.ok(parsed.ok)
  assert.is(parsed.value.disks.length, 1)
  const { hardware } = parsed.value
  return hardware === null ? null : Buffer.from(hardware).toString('utf8')
}

test('the hardware tree is kept as text; one over the limit is left out, the disks are not', () => {
  assert.is(
    hardwareOf({ id: 'core', children: [{ 'ä"': null }] }),
    '{"id":"core","children":[{"ä\\"":null}]}',
  )
  assert.is(hardwareOf([1]), '[1]')
  for (const none of [null, undefined]) assert.is(hardwareOf(none), null)
  const text = 'x'.repeat(MAX_HARDWARE_BYTES - '{"a":""}'.length)
  assert.is(hardwareOf({ a: text })?.length, MAX_HARDWARE_BYTES)
  assert.is(hardwareOf({ a: `${text}x` }), null)
  assert.is(hardwareOf({ a: `${text.slice(2)}€` }), null, 'bytes are counted, not characters')
})

const parsedOf = (text: string) => {
  const parsed = parseText(text)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.refusal))
  return parsed.value
}

test('the tree comes back as the bytes that came, wherever it stands', () => {
  const tree = '{ "id" : "b\\u00f6x",\n "size":12345678901234567890, "clock": 1.0, "e": [ 1E+2 ] }'
  for (const text of [
    `{"disks":[{"path":"a"}],"lshw": ${tree} }`,
    `{"lshw":${tree},"disks":[{"path":"a"}]}`,
    `{"lshw":[],"disks":[],"lshw":${tree},"disks":[{"path":"a"}]}`,
  ]) {
    const { disks, hardware } = parsedOf(text)
    assert.equal([disks.length, Buffer.from(hardware ?? []).toString()], [1, tree])
  }
})

const manyDisks = (count: number) =>
  JSON.stringify({ disks: Array.from({ length: count }, (_, n) => ({ path: `/dev/sd${n}` })) })

test('1,024 disks are kept and the rest is counted', () => {
  for (const [count, kept] of [
    [65, 65],
    [1024, 1024],
    [1500, 1024],
  ] as const) {
    const parsed = parsedOf(manyDisks(count))
    assert.equal([parsed.disks.length, parsed.disksLeftOut], [kept, count - kept])
    assert.is(parsed.disks.at(-1)?.path, `/dev/sd${kept - 1}`)
  }
})

const manyValues = (count: number) => `{"disks":[],"lshw":[${'{},'.repeat(count - 1)}1]}`

test('a tree of too many values, or with a key that readers refuse, is left out', () => {
  assert.ok(parsedOf(manyValues(MAX_HARDWARE_VALUES)).hardware)
  for (const text of [
    manyValues(MAX_HARDWARE_VALUES + 1),
    '{"disks":[],"lshw":{"a":{"__proto__":1}}}',
    '{"disks":[],"lshw":{"\\u005f_proto__":1}}',
  ]) {
    const { hardware, isHardwareLeftOut } = parsedOf(text)
    assert.equal([hardware, isHardwareLeftOut], [null, true])
  }
  assert.is(parsedOf('{"disks":[],"lshw":null}').isHardwareLeftOut, false)
})

const manyChildren = (count: number) =>
  `{"disks":[{"children":[${'{},'.repeat(count)}{}],"path":"/dev/sda"}]}`

test('what lsblk says beside is skipped, unless it is more than any machine has', () => {
  assert.is(parsedOf(manyChildren(100_000)).disks[0]?.path, '/dev/sda')
  const refused = parseText(manyChildren(250_000))
  assert.is(refused.ok || refused.refusal, 'too-many-values')
  assert.not.ok(isTaken({ disks: [{ path: 'x'.repeat(100_000) }] }))
  assert.is(disksOf({ path: 'a', by_path: 'x'.repeat(100_000) })[0]?.by_path, null)
})

test('a tree that is too large is left out unread; any other has to be JSON', () => {
  const large = `{"a":"${'x'.repeat(MAX_HARDWARE_BYTES)}"`
  assert.is(parsedOf(`{"disks":[{"path":"a"}],"lshw":${large}}}`).isHardwareLeftOut, true)
  for (const tree of ['{"a":1', '{"a":01}', '{} []', '{]', '[1,]', '{"a":"']) {
    const parsed = parseText(`{"lshw":${tree}, "disks":[]}`)
    assert.is(parsed.ok || parsed.refusal, 'malformed', tree)
  }
})

test('few of the keys are named that are refused', () => {
  const keys = Array.from({ length: 10_000 }, (_, at) => [`key ${at}`, 0])
  const parsed = parseBody({ disks: [], ...Object.fromEntries(keys) })
  assert.ok(!parsed.ok && JSON.stringify(parsed.refusal).length < 700)
})

test('any JSON is taken or refused', () => {
  const anyDisk = fc.record(
    { path: fc.string(), serial: fc.jsonValue(), removable: fc.jsonValue(), tran: fc.jsonValue() },
    { requiredKeys: [] },
  )
  const anyBody = fc.oneof(fc.jsonValue(), fc.record({ disks: fc.array(anyDisk) }))
  fc.assert(
    fc.property(anyBody, (body) => {
      const parsed = parseBody(body)
      if (!parsed.ok) assert.ok(parsed.refusal === 'malformed' || Array.isArray(parsed.refusal))
    }),
    { numRuns: 2000 },
  )
})

const stored = (machine: unknown): unknown => JSON.parse(JSON.stringify(machine))

test('a record is read as it was stored', () => {
  const fixture = createFixture()
  fixture.disks(diskOf('S1', { wwn: '0x5' }), diskOf(null))
  fixture.flash('flasher-flash-once')
  fixture.script()
  fixture.plan()
  fixture.failed('why')
  assert.equal(parseRecord(stored(fixture.machine)), fixture.machine)
})

test('a record of a release that knew less is read with what does no harm', () => {
  const { mac, boot_mode, created_at, updated_at } = createMachine(MAC, 'flasher-flash-once', NOW)
  const least = { mac, boot_mode, created_at, updated_at, bty_image_ref: REF, sanboot_drive: '$' }
  const read = parseRecord(least)
  assert.equal(
    [read?.bty_image_ref, read?.sanboot_drive, read?.labels, read?.locked, read?.name],
    [REF, null, [], false, null],
  )
  assert.is(read?.cycle.carried, true, 'an unknown cycle may have been a flash under way')
})

test('what is no machine is none', () => {
  for (const text of [null, 5, {}, { ...createMachine(MAC, 'ipxe-exit', NOW), mac: 'x' }]) {
    assert.is(parseRecord(stored(text)), null)
  }
})

const RAID = [
  diskOf('PDN', { path: '/dev/sda', wwn: '0x600508b1001cc7ea', by_path: 'pci-3-scsi-0' }),
  diskOf('PDN', { path: '/dev/sdb', wwn: '0x600508b1001cc7eb', by_path: 'pci-3-scsi-1' }),
]
const NAMESPACES = [
  diskOf('S5GX', { path: '/dev/nvme0n1', wwn: 'eui.0025384b31a00001', by_path: 'pci-1-nvme-1' }),
  diskOf('S5GX', {
    path: '/dev/nvme0n2',
    wwn: `eui.${'0025384b31a00002'.repeat(2)}`,
    by_path: 'pci-1-nvme-2',
  }),
]
const ENCLOSURE = ['0x0000000000000000', '0x0000000000000000', null, '0xffffffffffffffff'].map(
  (wwn, slot) => diskOf(null, { path: `/dev/sd${slot}`, wwn, by_path: `pci-17-ata-${slot}` }),
)

const NAMES = [
  ['volumes of one RAID controller', RAID, ['wwn:0x600508b1001cc7ea', 'wwn:0x600508b1001cc7eb']],
  [
    'namespaces of one NVMe drive',
    NAMESPACES,
    ['eui:0025384b31a00001', `eui:${'0025384b31a00002'.repeat(2)}`],
  ],
  ['neither serial nor WWN', ENCLOSURE, [0, 1, 2, 3].map((slot) => `path:pci-17-ata-${slot}`)],
  ['a serial each', [diskOf('S1', { wwn: '0x1' }), diskOf('S2', { wwn: '0x2' })], ['S1', 'S2']],
  ['nothing at all', [diskOf(null), diskOf('')], [null, null]],
  ['one serial and nothing else', [diskOf('S1'), diskOf('S1')], [null, null]],
  [
    'one WWN for both',
    ['a', 'b'].map((by_path) => diskOf('S', { wwn: '0x1', by_path })),
    ['path:a', 'path:b'],
  ],
] as const
for (const [what, disks, names] of NAMES) {
  test(`${what}: each is named so that exactly one is meant`, () => {
    assert.equal(
      disks.map((disk) => nameAmong(disk, disks)),
      names,
    )
    for (const [at, name] of names.entries()) {
      const pick = pickDisk(name, null, disks)
      if (pick !== null) assert.equal(findPicked(disks, pick), { ok: true, value: disks[at] })
    }
  })
}

test('alone, a disk is called by its serial, its WWN, its place', () => {
  const all = { serial: 'S', wwn: '0x5', by_path: 'p' }
  assert.is(identifyDisk(all), 'S')
  assert.is(identifyDisk({ ...all, serial: ' ' }), 'wwn:0x5')
  assert.is(identifyDisk({ ...all, serial: null, wwn: 'naa.0000000000000000' }), 'path:p')
})

test('two that are called so, or none, is no disk', () => {
  const why = (name: string, disks = RAID) => {
    const pick = pickDisk(name, null, disks)
    const found = pick === null ? null : findPicked(disks, pick)
    return found === null || found.ok ? found : found.refusal.why
  }
  assert.is(why('PDN'), 'disk-ambiguous')
  assert.is(why('wwn:0x1'), 'disk-missing')
  assert.is(why('wwn:0x0000000000000000', ENCLOSURE), 'disk-missing')
  assert.is(
    why(
      'path:x',
      ['x', 'x'].map((by_path) => diskOf(null, { by_path })),
    ),
    'disk-ambiguous',
  )
  const twin = diskOf('wwn:0x600508b1001cc7ea')
  assert.is(why('wwn:0x600508b1001cc7ea', [...RAID, twin]), 'disk-ambiguous', 'a serial that lies')
})

const CHANGES = [
  ['nothing', {}, true],
  ['its name in /dev', { path: '/dev/sdz' }, true],
  ['the size', { size_bytes: 9 }, false],
  ['the size, as people read it', { size_bytes: null, size: '9T' }, false],
  ['the same size, as people read it', { size_bytes: null }, true],
  ['the model', { model: 'B' }, false],
  ['a serial number', { serial: 'S' }, false],
] as const
for (const [what, change, isFound] of CHANGES) {
  test(`at its place it is the one that was picked unless that changes: ${what}`, () => {
    const disk = diskOf(null, { by_path: 'p', model: 'A', size_bytes: 8 })
    const pick = pickDisk('path:p', null, [disk])
    assert.ok(pick !== null)
    const found = findPicked([{ ...disk, ...change }], pick)
    assert.is(found.ok, isFound)
    if (!found.ok) assert.is(found.refusal.why, 'disk-changed')
  })
}

test('a WWN is followed to another slot, when its twin is gone, and with a serial that udev lost', () => {
  const [first] = RAID
  const pick = pickDisk('wwn:0x600508b1001cc7ea', null, RAID)
  assert.ok(first !== undefined && pick !== null)
  for (const change of [{ by_path: 'elsewhere' }, { serial: null }, {}]) {
    assert.is(findPicked([{ ...first, ...change }], pick).ok, true)
  }
})

test('what was picked stays picked, unless it is picked anew', () => {
  const before = pickDisk('path:p', null, [diskOf(null, { by_path: 'p', model: 'A' })])
  const now = [diskOf('S', { by_path: 'p', model: 'B' })]
  assert.is(pickDisk('path:p', before, now), before)
  const anew = pickDisk('+path:p', before, now)
  assert.is(anew?.name, 'path:p')
  assert.is(anew?.seen?.model, 'B')
  assert.is(pickDisk('+x', null, now)?.name, '+x', 'a serial number may begin with anything')
  assert.is(pickDisk(null, before, now), null)
})

test('picked before anything was known, a place means a disk without a better name', () => {
  const pick = { name: 'path:p', seen: null }
  const plain = diskOf(null, { by_path: 'p', model: 'A' })
  assert.is(findPicked([plain], pick).ok, true)
  assert.is(findPicked([{ ...plain, serial: 'S' }], pick).ok, false)
  assert.is(keepPick(pick, [plain]).seen?.model, 'A')
  assert.is(keepPick(pick, [{ ...plain, serial: 'S' }]).seen, null)
  assert.is(keepPick({ name: 'wwn:0x600508b1001cc7ea', seen: null }, RAID).seen?.serial, 'PDN')
})

test('older live systems know serials, and WWNs of disks without one', () => {
  const [plain] = ENCLOSURE
  assert.ok(plain !== undefined)
  for (const [name, disks, wanted] of [
    ['S1', [diskOf('S1')], false],
    ['wwn:0x5', [diskOf(null, { wwn: '0x5' })], false],
    ['eui:5', [diskOf(null, { wwn: 'eui.5' })], true],
    ['wwn:0x600508b1001cc7ea', RAID, true],
    ['path:pci-17-ata-0', [plain], true],
    ['path:pci-17-ata-0', null, true],
    ['wwn:0x5', null, false],
  ] as const) {
    assert.is(wantsDiskId(name, disks), wanted, name)
  }
})

test.run()
