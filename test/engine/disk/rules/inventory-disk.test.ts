import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type SurveyedDisk,
  chooseNames,
  listInventory,
  renderListedSize,
} from '#engine/disk/rules/disk.ts'
import { parseInventory } from '#engine/inventory/rules/inventory.ts'

const test = suite('inventory')

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
