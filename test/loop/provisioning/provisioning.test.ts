/** cloud-init seeds on real file systems: found, written, and nothing else changed. */
import { readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { SEED_FOLDER, type Provisioning } from '#engine/flash/rules/provisioning.ts'
import {
  createFlashedDisk,
  listTop,
  makeFolders,
  withMounted,
} from '#test/support/disk/flashed-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import {
  catchFault,
  createFixture,
  readSeed,
  SYNTHETIC,
} from '#test/support/disk/provisioning-fixture.ts'

const EXT4 = ['mkfs.ext4', '-q']
const XFS = ['mkfs.xfs', '-q']
const BTRFS = ['mkfs.btrfs', '-q']
const run = $({ quiet: true, verbose: false })

const seeds = suite('cloud-init')

seeds('goes into the partition that has it, with meta-data made up anew each time', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    { megabytes: 8 },
    { megabytes: 16, mkfs: EXT4, fill: makeFolders('etc') },
    { megabytes: 16, mkfs: EXT4, fill: makeFolders('etc/cloud') },
    { megabytes: 16, mkfs: EXT4, fill: makeFolders('etc/cloud') },
  ])
  await fixture.provisioner.check(fixture.cloudInit)
  await fixture.provisioner.apply(fixture.cloudInit, disk.device)
  await fixture.assertLeftAsFound(disk)
  const seed = await readSeed(disk.part(3))
  assert.is(seed.userData, '#cloud-config\npassword: secret\n')
  assert.match(seed.metaData, SYNTHETIC)
  assert.is(seed.mode, 0o600)
  assert.equal(seed.names, ['meta-data', 'user-data'])
  assert.equal(await listTop(disk.part(4)), ['etc', 'lost+found'])

  await fixture.provisioner.apply(fixture.cloudInit, disk.device)
  assert.is.not((await readSeed(disk.part(3))).metaData, seed.metaData)
  await fixture.provisioner.apply(
    { ...fixture.cloudInit, metaData: fixture.at('meta-data') },
    disk.device,
  )
  assert.is((await readSeed(disk.part(3))).metaData, 'instance-id: given\n')
})

seeds('works on xfs, on a disk without a table and on a partition as target', async () => {
  await using fixture = await createFixture()
  await using xfs = await createFlashedDisk([
    { megabytes: 310, mkfs: XFS, fill: makeFolders('etc/cloud') },
  ])
  await fixture.provisioner.apply(fixture.cloudInit, xfs.part(1))
  await fixture.assertLeftAsFound(xfs)
  assert.match((await readSeed(xfs.part(1), 'ro,nouuid')).metaData, SYNTHETIC)

  await using whole = await createLoop({ megabytes: 16 })
  await run`mkfs.ext4 -q ${whole.device}`
  await withMounted(whole.device, makeFolders('etc/cloud'))
  await fixture.provisioner.apply(fixture.cloudInit, whole.device)
  await fixture.assertLeftAsFound(whole)
  assert.match((await readSeed(whole.device)).metaData, SYNTHETIC)
})

seeds('finds btrfs subvolumes, and the one that will be mounted on /var', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    {
      megabytes: 128,
      mkfs: BTRFS,
      async fill(top) {
        for (const name of ['home', 'root', 'root,dev', 'var']) {
          await run`btrfs subvolume create ${join(top, name)}`
        }
        await makeFolders('root/etc/cloud', 'root,dev/etc/cloud')(top)
        const fstab = 'LABEL=nowhere / btrfs subvol=root\nLABEL=pool /var btrfs subvol=var\n'
        await writeFile(join(top, 'root/etc/fstab'), fstab)
      },
    },
  ])
  await run`btrfs filesystem label ${disk.part(1)} pool`
  await fixture.provisioner.apply(fixture.cloudInit, disk.device)
  await fixture.assertLeftAsFound(disk)
  const seed = await readSeed(disk.part(1), 'ro,subvol=var', SEED_FOLDER.slice('var/'.length))
  assert.match(seed.metaData, SYNTHETIC)
  assert.equal(await withMounted(disk.part(1), (top) => readdir(join(top, 'root')), 'ro'), ['etc'])

  await withMounted(disk.part(1), (top) => rm(join(top, 'root/etc/fstab')))
  await fixture.provisioner.apply(fixture.cloudInit, disk.device)
  assert.match((await readSeed(disk.part(1), 'ro,subvol=root')).metaData, SYNTHETIC)
})

seeds('replaces a seed that came with the image and would be read first', async () => {
  await using fixture = await createFixture()
  const first = 'var/lib/cloud/seed/nocloud'
  await using disk = await createFlashedDisk([
    {
      megabytes: 16,
      mkfs: EXT4,
      async fill(root) {
        await makeFolders('etc/cloud', first)(root)
        for (const name of ['user-data', 'meta-data']) {
          await writeFile(join(root, first, name), 'of the image')
        }
      },
    },
  ])
  await fixture.provisioner.apply(fixture.cloudInit, disk.device)
  assert.equal(await readSeed(disk.part(1), 'ro', first), await readSeed(disk.part(1)))
})

seeds.run()

const checks = suite('check')

checks('finds missing files and tools before anything is written', async () => {
  await using fixture = await createFixture()
  const { cloudInit, cijoe, provisioner } = fixture
  const cases: readonly (readonly [Provisioning, string, RegExp])[] = [
    [{ ...cloudInit, userData: fixture.at('none') }, 'input-missing', /user-data not found/],
    [{ ...cloudInit, metaData: fixture.at('bin') }, 'input-missing', /meta-data is not a file/],
    [{ ...cijoe, workflow: fixture.at('none') }, 'input-missing', /cijoe workflow not found/],
    [{ ...cijoe, config: fixture.at('none') }, 'input-missing', /cijoe config not found/],
    [cijoe, 'tool-missing', /cijoe is not installed/],
  ]
  for (const [provisioning, code, words] of cases) {
    const fault = await catchFault(provisioner.check(provisioning))
    assert.is(fault.code, code)
    assert.match(fault.message, words)
  }
  await provisioner.check(cloudInit)
  await provisioner.check({ mode: 'none' })
})

checks.run()
