import { mkdtempDisposable, open, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createDisks } from '#engine/disk/disks.ts'
import { type DiskUse, renderUse } from '#engine/disk/rules/disk.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { faultOf } from '#test/support/collect.ts'
import { mounted } from '#test/support/disk/capture-disks.ts'
import { makeContent, makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { createImageFile } from '#test/support/disk/first-boot-image.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { assertBlank, assertSame, flash, makeStale, readDisk } from '#test/support/disk/writer.ts'
import { createMachine, LIVE, type Machine, SERVER } from '#test/support/server/machines.ts'

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

const run = $({ quiet: true, verbose: false })
const MIB = 1 << 20
const SIZE = 48 * MIB

/** Flashes an image that is zeros for the most part onto a loop device over a file on ext4. */
async function flashOnto(make: (path: string) => Promise<unknown>) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-backing-'))
  const below = join(folder.path, 'file-system')
  await run`truncate -s ${128 * MIB} ${below}`
  await run`mkfs.ext4 -q ${below}`
  return await mounted(below, [], async (at) => {
    const backing = join(at, 'disk')
    await make(backing)
    await using loop = await createLoop({ backing })
    const image = Buffer.concat([makeDiskImage(8 * MIB), Buffer.alloc(SIZE - 8 * MIB)])
    const methods = new Set<string>()
    await flash({
      source: createMemorySource(image, { name: 'disk.img' }),
      device: loop.device,
      verify: 'all',
      change(plan) {
        methods.add(plan.zeros)
        return plan
      },
    })
    assertSame(await readDisk(loop.device), image)
    await run`sync ${backing}`
    const { blocks } = await stat(backing)
    return { allocated: blocks * 512, methods: [...methods] }
  })
}

test('a fully allocated one stays so', async () => {
  const { allocated, methods } = await flashOnto(async (path) => {
    await using file = await open(path, 'wx')
    await file.writeFile(makeNoise(SIZE))
  })
  assert.equal(methods, ['zero-range'])
  assert.ok(allocated >= SIZE, `${allocated} bytes`)
})

test('a sparse one is sparse where the image holds zeros', async () => {
  const { allocated, methods } = await flashOnto(async (path) => {
    await using file = await open(path, 'wx')
    await file.truncate(SIZE)
    // An earlier owner's, in the middle of the zeros to come.
    await file.write(makeNoise(24 * MIB), 0, 24 * MIB, 16 * MIB)
  })
  assert.equal(methods, ['discard'])
  assert.ok(allocated < 12 * MIB, `${allocated} bytes`)
})

const REAL = 32
/** Without reading back, the marks alone show it. */
const VERIFIES = ['data', 'none'] as const

/** Says that it has so many MiB, and begins anew behind REAL. */
function createCounterfeit(megabytes: number) {
  const wrap = `set -- "$1" "$2" "$3" $(($4 % ${REAL * MIB}))`
  const scripts = { pread: wrap, pwrite: wrap, zero: wrap, trim: wrap }
  return createFaultyDisk({ nbdkit: scripted(megabytes, scripts) })
}

async function flashCounterfeit(
  image: string,
  target: string,
  options: Partial<typeof WHOLE_DISK> = {},
) {
  const { signal } = new AbortController()
  const targets = [{ path: target }]
  const order = { image, format: null, targets, options: { ...WHOLE_DISK, ...options } }
  const [outcome] = await createFlasher({ env: process.env }).flash(order, { signal, onEvent() {} })
  assert.ok(outcome?.kind === 'failed' && outcome.code === 'verify-failed', JSON.stringify(outcome))
  assert.match(outcome.reason, /does not return what was written/)
  assert.match(outcome.hint ?? '', /smaller than it claims/)
}

test('does not get an image whose data comes to lie on its zeros', async () => {
  await using image = await createImageFile([{ megabytes: 36 }])
  {
    await using file = await open(image.path, 'r+')
    for (const at of [2, REAL + 5]) await file.write(Buffer.alloc(MIB, at), 0, MIB, at * MIB)
  }
  for (const verify of VERIFIES) {
    await using disk = await createCounterfeit(48)
    await flashCounterfeit(image.path, disk.device, { verify })
    await assertBlank(disk.device)
  }
})

test('is not grown into', async () => {
  const ext4 = { megabytes: 16, mkfs: ['mkfs.ext4', '-q'] }
  await using image = await createImageFile([ext4])
  for (const verify of VERIFIES) {
    await using disk = await createCounterfeit(80)
    await flashCounterfeit(image.path, disk.device, { grow: true, verify })
    await assertBlank(disk.device)
  }
})

const runTool = $({ quiet: true, nothrow: true })
const sourceOf = (image: Buffer) => createMemorySource(image, { name: 'disk.img' })

async function judge(device: string): Promise<string> {
  const { stdout, stderr } = await runTool`sgdisk --verify ${device}`
  return stdout + stderr
}

for (const sectorBytes of [512, 4096] as const) {
  const image = makeDiskImage(5 * MIB, { sectorBytes })
  // The end of the second disk lies within the last MiB, that of the third is the image's own.
  for (const diskBytes of [9 * MIB + sectorBytes, 5 * MIB + 16 * sectorBytes, 5 * MIB]) {
    test(`an image of ${image.length} on ${diskBytes}, sectors of ${sectorBytes}`, async () => {
      await using loop = await createLoop({ sizeBytes: diskBytes, sectorBytes })
      const { device } = loop
      await makeStale(device, sectorBytes)
      await flash({ source: sourceOf(image), device, fixGpt: true })
      assert.match(await judge(device), 'No problems found')
      // But for the tables, the image is what was written.
      const found = await readDisk(device)
      const end = image.length - 5 * 4096
      assertSame(found.subarray(40_960, end), image.subarray(40_960, end))
      const { stdout } = await runTool`sgdisk --info=1 ${device}`
      assert.match(stdout, 'Linux filesystem')
    })
  }

  test(`without it the backup stays where the image has it, sectors of ${sectorBytes}`, async () => {
    await using loop = await createLoop({ megabytes: 9, sectorBytes })
    const { device } = loop
    await flash({ source: sourceOf(image), device })
    assertSame((await readDisk(device)).subarray(0, image.length), image)
    assert.not.match(await judge(device), 'No problems found')
  })
}

const damaged = makeDiskImage(5 * MIB)
damaged.writeUInt8(1, 600)
const REFUSED: readonly (readonly [string, Buffer, RegExp])[] = [
  ['none', makeContent(5 * MIB), /the image has no GPT for this sector size$/],
  ['a damaged one', damaged, /the image's GPT is damaged$/],
]
for (const [what, image, words] of REFUSED) {
  test(`an image with ${what} is refused before the disk is touched`, async () => {
    await using loop = await createLoop({ megabytes: 9 })
    const { device } = loop
    const stale = await makeStale(device)
    const fault = await faultOf(() => flash({ source: sourceOf(image), device, fixGpt: true }))
    assert.is(fault.code, 'plan-refused')
    assert.match(fault.message, words)
    assert.is(fault.hint, 'Flash without --fix-gpt.')
    assertSame(await readDisk(device), stale)
  })
}

test.run()
