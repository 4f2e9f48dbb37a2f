import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  chooseNames,
  type DiskIdentity,
  type DiskUse,
  isSameDisk,
  listInventory,
  renderListedSize,
  renderUse,
  type SurveyedDisk,
} from '#engine/disk/rules/disk.ts'
import { parseInventory } from '#engine/inventory/rules/inventory.ts'

const test = suite('disk')

const DISK: DiskIdentity = { serial: 'S1', wwn: 'w1', sizeBytes: 4096, diskseq: 7 }

/** What changed, from what, to what; whether it is still the same disk. */
const rows: readonly (readonly [string, Partial<DiskIdentity>, Partial<DiskIdentity>, boolean])[] =
  [
    ['nothing', {}, {}, true],
    ['the serial', {}, { serial: 'S2' }, false],
    ['the WWN', {}, { wwn: 'w2' }, false],
    ['the size', {}, { sizeBytes: 8192 }, false],
    ['the diskseq', {}, { diskseq: 8 }, false],
    [
      'the diskseq, of a disk that has nothing else',
      { serial: null, wwn: null },
      { serial: null, wwn: null, diskseq: 8 },
      false,
    ],
    ['the serial is known later, same diskseq', { serial: null }, {}, true],
    ['serial and WWN are lost, same diskseq', {}, { serial: null, wwn: null }, true],
    [
      'the serial is known later, no diskseq',
      { serial: null, diskseq: null },
      { diskseq: null },
      false,
    ],
    ['the WWN is lost, no diskseq', { diskseq: null }, { wwn: null, diskseq: null }, false],
    ['a diskseq appears', { diskseq: null }, {}, true],
    ['a diskseq appears with another serial', { diskseq: null }, { serial: 'S2' }, false],
    ['a diskseq appears with a first serial', { diskseq: null, serial: null }, {}, false],
    ['the size, same diskseq', { serial: null }, { serial: null, sizeBytes: 1 }, false],
  ]
for (const [name, before, now, same] of rows)
  test(`isSameDisk: ${name}`, () => {
    assert.is(isSameDisk({ ...DISK, ...before }, { ...DISK, ...now }), same)
  })

const device = '/dev/sda1'
const uses: readonly (readonly [DiskUse, string])[] = [
  [{ kind: 'mounted', device, at: '/home' }, '/dev/sda1 is mounted on /home'],
  [
    { kind: 'mounted', device, at: '/x', process: 42 },
    '/dev/sda1 is mounted on /x (seen by process 42)',
  ],
  [{ kind: 'mounted', device, at: '/a\n\u001b[2Jb' }, '/dev/sda1 is mounted on /a??[2Jb'],
  [{ kind: 'swap', device }, '/dev/sda1 is swap space in use'],
  [
    { kind: 'holder', device, holder: '/dev/md0', what: 'raid10' },
    '/dev/sda1 is in use by /dev/md0 (RAID 10)',
  ],
  [
    { kind: 'holder', device, holder: '/dev/bcache0', what: 'disk' },
    '/dev/sda1 is in use by /dev/bcache0 (disk)',
  ],
  [
    { kind: 'holder', device, holder: '/dev/dm-0', what: 'constructor' },
    '/dev/sda1 is in use by /dev/dm-0 (constructor)',
  ],
  [{ kind: 'zfs', device, pool: 'tank' }, '/dev/sda1 belongs to the ZFS pool tank'],
  [
    { kind: 'btrfs', device, uuid: 'f00d' },
    '/dev/sda1 belongs to the mounted btrfs file system f00d',
  ],
  [{ kind: 'loop', device, loop: '/dev/loop0' }, '/dev/sda1 is used by /dev/loop0'],
  [{ kind: 'running-system', device }, '/dev/sda1 holds the running system'],
  [{ kind: 'holds-image', device }, '/dev/sda1 holds the image'],
]
for (const [use, words] of uses) test(`renderUse: ${words}`, () => assert.is(renderUse(use), words))

const disk = (path: string, names: Partial<SurveyedDisk['device']> = {}): SurveyedDisk => ({
  path,
  removable: false,
  parts: [],
  device: {
    node: path,
    type: 'disk',
    sectorBytes: 512,
    readonly: false,
    vendor: 'ATA',
    model: 'Disk 9',
    tran: 'sata',
    identity: { serial: 'S1', wwn: '0x5000', sizeBytes: 500_107_862_016, diskseq: 1 },
    zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
    uses: [],
    ...names,
  },
})

test('says what the server asks for', () => {
  const names = new Map([['/dev/sda', 'pci-0000:00:17.0-ata-1']])
  assert.equal(listInventory([disk('/dev/sda')], names), [
    {
      path: '/dev/sda',
      size: '465.8G',
      vendor: 'ATA',
      model: 'Disk 9',
      serial: 'S1',
      tran: 'sata',
      removable: false,
      readonly: false,
      wwn: '0x5000',
      by_path: 'pci-0000:00:17.0-ata-1',
      size_bytes: 500_107_862_016,
    },
  ])
})

test('whatever a disk calls itself, the server takes the list', () => {
  const long = 'x'.repeat(4096)
  const identity = { serial: long, wwn: long, sizeBytes: 1, diskseq: null }
  const odd = disk('/dev/sdb', { vendor: long, model: long, tran: long, identity })
  const many = Array.from({ length: 2000 }, (_, index) => disk(`/dev/vd${index}`))
  const disks = listInventory([odd, ...many], new Map([['/dev/sdb', long]]))
  const parsed = parseInventory(Buffer.from(JSON.stringify({ disks })))
  assert.equal(parsed.ok && [parsed.value.disks.length, parsed.value.disksLeftOut], [1024, 0])
  assert.equal([disks[0]?.serial, disks[0]?.wwn, disks[0]?.by_path], [null, null, null])
})

test('disks that can be flashed come first: whoever keeps fewer keeps them', () => {
  const used = { uses: [{ kind: 'swap', device: '/dev/sda1' }] } as const
  const identity = { serial: 'S', wwn: null, sizeBytes: 0, diskseq: null }
  const disks = [
    disk('/dev/sda', used),
    disk('/dev/sdb'),
    disk('/dev/sdc', { readonly: true }),
    disk('/dev/sdd', { identity }),
    disk('/dev/sde'),
  ]
  const paths = listInventory(disks, new Map()).map(({ path }) => path)
  assert.equal(paths, ['/dev/sdb', '/dev/sde', '/dev/sda', '/dev/sdc', '/dev/sdd'])
})

test('sizes read as in a listing', () => {
  const sizes = [0, 512, 64 * 2 ** 20, 1.5 * 2 ** 40, 2 ** 60].map(renderListedSize)
  assert.equal(sizes, ['0B', '512B', '64M', '1.5T', '1024P'])
})

test('of several names of one place the first counts, those of partitions never', () => {
  const links = [
    { name: 'virtio-pci-0000:00:05.0', node: '/dev/vda' },
    { name: 'pci-0000:00:05.0', node: '/dev/vda' },
    { name: 'pci-0000:00:05.0-part1', node: '/dev/vda1' },
  ]
  assert.equal([...chooseNames(links)], [['/dev/vda', 'pci-0000:00:05.0']])
})

test.run()
