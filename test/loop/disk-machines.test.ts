import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderUse, type DiskUse } from '#engine/disk/rules/disk.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createMachine, LIVE, SERVER, type Machine } from '#test/support/server/machines.ts'

const test = suite('disks of other machines')

async function probe(machine: Machine, name: string) {
  await using tree = await createMachine(machine, { nodes: true })
  const link = join(tree.dev, 'link')
  await symlink(join(tree.dev, name), link)
  const { path, exists, device } = await createDisks(tree).probe(link, null)
  assert.is(path, link)
  assert.is(exists, true)
  assert.is(device?.node, join(tree.dev, name))
  if (device === null) throw new Error('no device')
  return { ...device, uses: device.uses.map((use: DiskUse) => renderUse(use)) }
}

test('NVMe with encrypted LVM: names, identity, queue, uses', async () => {
  const { node, ...facts } = await probe(SERVER, 'nvme0n1')
  assert.match(node, /nvme0n1$/)
  assert.equal(facts, {
    type: 'disk',
    sectorBytes: 4096,
    readonly: false,
    vendor: null,
    model: 'Samsung SSD 990 PRO 2TB',
    tran: 'nvme',
    identity: {
      serial: 'S6Z2NJ0W000001',
      wwn: 'eui.0025384b31',
      sizeBytes: 4000797360 * 512,
      diskseq: 1,
    },
    zeros: { loop: null, writeZeroesMaxBytes: 131072, discardMaxBytes: 2199023255040 },
    uses: [
      '/dev/nvme0n1p1 is mounted on /boot/efi',
      '/dev/mapper/vg-root is mounted on /',
      '/dev/nvme0n1p2 is in use by /dev/mapper/luks (encrypted)',
      '/dev/mapper/luks is in use by /dev/mapper/vg-root (LVM)',
      '/dev/mapper/luks is in use by /dev/mapper/vg-swap (LVM)',
      '/dev/mapper/vg-swap is swap space in use',
      '/dev/nvme0n1 holds the running system',
    ],
  })
})

test('a partition goes by its disk’s names and queue, and its own size', async () => {
  const facts = await probe(SERVER, 'nvme0n1p3')
  assert.is(facts.type, 'part')
  assert.is(facts.sectorBytes, 4096)
  assert.is(facts.identity.serial, 'S6Z2NJ0W000001')
  assert.is(facts.identity.sizeBytes, 4096 * 512)
  assert.is(facts.identity.diskseq, 1)
  assert.equal(facts.uses, [])
})

test('what lsblk does not know comes from /sys', async () => {
  const usb = await probe(SERVER, 'sdc')
  assert.is(usb.identity.serial, 'FROM-SYS')
  assert.is(usb.readonly, true)
  assert.equal(usb.uses, [])
  const multipath = await probe(SERVER, 'dm-3')
  assert.is(multipath.type, 'mpath')
  assert.is(multipath.identity.wwn, 'mpath-3600')
})

test('RAID, ZFS and names with slashes', async () => {
  assert.equal((await probe(SERVER, 'sdb')).uses, [
    '/dev/md127 is mounted on /srv',
    '/dev/sdb is in use by /dev/md127 (RAID 1)',
  ])
  assert.equal((await probe(SERVER, 'sdf')).uses, ['/dev/sdf1 belongs to the ZFS pool tank'])
  const smart = await probe(SERVER, 'cciss/c0d0p1')
  assert.is(smart.vendor, 'HP')
  assert.equal(smart.uses, ['/dev/cciss/c0d0p1 is mounted on /mnt/a b'])
})

test('the stick that a live system runs from', async () => {
  assert.equal((await probe(LIVE, 'sda')).uses, [
    '/dev/sda1 is mounted on /run/live/medium',
    '/dev/sda holds the running system',
  ])
  assert.equal((await probe(LIVE, 'sdb')).uses, [])
})

test('a floppy and a board’s firmware are no disks, whatever lsblk calls them', async () => {
  const names = { fd0: '2:0', mtdblock0: '31:0', mmcblk0boot0: '179:8', ram0: '1:0' }
  const blocks = Object.fromEntries(Object.entries(names).map(([name, dev]) => [name, { dev }]))
  const lsblk = Object.keys(names).map((name) => ({ name, type: 'disk' }))
  const machine: Machine = { blocks, lsblk, mountinfo: '' }
  const types = await Promise.all(
    Object.keys(names).map(async (name) => (await probe(machine, name)).type),
  )
  assert.equal(types, ['floppy', 'flash chip', 'eMMC boot area', 'disk'])
})

test('a node with no device behind it has no size', async () => {
  await using tree = await createMachine(
    { ...SERVER, blocks: { sdz: { dev: '259:1048575' } } },
    { nodes: true },
  )
  const { device } = await createDisks({ ...tree, sys: '/sys' }).probe(join(tree.dev, 'sdz'), null)
  assert.is(device?.identity.sizeBytes, 0)
  assert.equal(device?.uses, [])
})

if (process.getuid?.() === 0) test.run()
