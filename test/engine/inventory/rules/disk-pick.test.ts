import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  findPicked,
  identifyDisk,
  keepPick,
  nameAmong,
  pickDisk,
  wantsDiskId,
} from '#engine/inventory/rules/machine.ts'
import { diskOf } from '#test/support/server/machine-fixture.ts'

const test = suite('what disks are picked by')

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
