/** Images made to harm the host that provisions them, and broken ones. */
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { Fault } from '#kit/foundation/fault.ts'
import { SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import {
  createFlashedDisk,
  makeFolders,
  withMounted,
  type FlashedDisk,
} from '#test/support/disk/flashed-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import {
  catchFault,
  createFixture,
  readSeed,
  SYNTHETIC,
} from '#test/support/disk/provisioning-fixture.ts'

const EXT4 = ['mkfs.ext4', '-q']
/** Nothing is left for the kernel to write behind our back once it is mounted. */
const SETTLED_EXT4 = [...EXT4, '-E', 'lazy_itable_init=0,lazy_journal_init=0']
const BTRFS = ['mkfs.btrfs', '-q']
const run = $({ quiet: true, verbose: false })
const traps = suite('provisioning of hostile images')

type Trap = (root: string, outside: string) => Promise<unknown>
const seedFolder = (root: string) => mkdir(join(root, SEED_FOLDER), { recursive: true })
/** What lies in the image, and where the seed must be found regardless. */
const TRAPS: Readonly<Record<string, readonly [trap: Trap, at: (outside: string) => string]>> = {
  'an absolute /var': [
    (root, outside) => symlink(outside, join(root, 'var')),
    (outside) => `${outside}/lib/cloud/seed/nocloud-net`,
  ],
  'a climbing /var/lib/cloud': [
    async (root) => {
      await mkdir(join(root, 'var/lib'), { recursive: true })
      await symlink('../../../../../../../../../../tmp/x', join(root, 'var/lib/cloud'))
    },
    () => 'tmp/x/seed/nocloud-net',
  ],
  'user-data that is a link to a file of the host': [
    async (root, outside) => {
      await seedFolder(root)
      await symlink(`${outside}/file`, join(root, SEED_FOLDER, 'user-data'))
    },
    () => SEED_FOLDER,
  ],
  'a link through /proc': [
    async (root) => {
      await mkdir(join(root, 'proc'))
      await symlink('/proc/1/root/tmp', join(root, 'var'))
    },
    () => 'proc/1/root/tmp/lib/cloud/seed/nocloud-net',
  ],
}

for (const [what, [trap, at]] of Object.entries(TRAPS)) {
  traps(`stays inside the image: ${what}`, async () => {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([
      {
        megabytes: 16,
        mkfs: EXT4,
        async fill(root) {
          await makeFolders('etc/cloud')(root)
          await trap(root, fixture.at('outside'))
        },
      },
    ])
    const tmp = await readdir('/tmp')
    await fixture.provisioner.apply(fixture.cloudInit, disk.device)
    await fixture.assertLeftAsFound(disk)
    assert.is(tmp.includes('x'), (await readdir('/tmp')).includes('x'))
    const seed = await readSeed(disk.part(1), 'ro', at(fixture.at('outside')))
    assert.match(seed.metaData, SYNTHETIC)
    assert.is(seed.mode, 0o600)
  })
}

const OBSTACLES: Readonly<Record<string, readonly [trap: Trap, words: RegExp]>> = {
  'a FIFO as user-data': [
    async (root) => {
      await seedFolder(root)
      await run`mkfifo ${join(root, SEED_FOLDER, 'user-data')}`
    },
    /nocloud-net\/user-data is a FIFO in the image/,
  ],
  'a device node as meta-data': [
    async (root) => {
      await seedFolder(root)
      await run`mknod ${join(root, SEED_FOLDER, 'meta-data')} b 7 0`
    },
    /meta-data is a device node in the image/,
  ],
  'cloud-init switched off': [
    (root) => writeFile(join(root, 'etc/cloud/cloud-init.disabled'), ''),
    /cloud-init is switched off in the image on \/dev\/loop\d+p1/,
  ],
  '/var on another disk': [
    (root) => writeFile(join(root, 'etc/fstab'), 'UUID=0123-4567 /var ext4 defaults 0 2\n'),
    /mounts \/var from UUID=0123-4567, which is not on this disk/,
  ],
  'a loop of links': [(root) => symlink('var', join(root, 'var')), /too many links/],
}

for (const [what, [trap, words]] of Object.entries(OBSTACLES)) {
  traps(`says what is in the way: ${what}`, async () => {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([
      {
        megabytes: 16,
        mkfs: EXT4,
        async fill(root) {
          await makeFolders('etc/cloud')(root)
          await trap(root, fixture.at('outside'))
        },
      },
    ])
    const fault = await catchFault(fixture.provisioner.apply(fixture.cloudInit, disk.device))
    assert.is(fault.code, 'provision-failed')
    assert.match(fault.message, words)
    await fixture.assertLeftAsFound(disk)
  })
}

traps('reads what a dirty journal holds', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 32, mkfs: SETTLED_EXT4 }])
  await using copy = await mountedThenTorn(disk, makeFolders('etc/cloud'))
  const said = await run`dumpe2fs -h ${copy.device}`
  assert.match(said.stdout, /needs_recovery/)
  await fixture.provisioner.apply(fixture.cloudInit, copy.device)
  await fixture.assertLeftAsFound(copy)
  assert.match((await readSeed(copy.device)).metaData, SYNTHETIC)
})

/** A copy of the file system as it is while mounted: what a disk holds after a power cut. */
async function mountedThenTorn(disk: FlashedDisk, fill: (root: string) => Promise<unknown>) {
  await using undo = new AsyncDisposableStack()
  const copy = undo.use(await createLoop({ megabytes: 32 }))
  await withMounted(disk.part(1), async (root) => {
    await fill(root)
    await run`sync --file-system ${root}`
    await run`dd if=${disk.part(1)} of=${copy.device} bs=1M iflag=direct oflag=direct status=none`
  })
  const held = undo.move()
  return { device: copy.device, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

traps('lists what was looked at when nothing has it', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    { megabytes: 16, mkfs: EXT4, fill: makeFolders('etc', 'cloud') },
    { megabytes: 8 },
    { megabytes: 8, mkfs: ['mkswap', '-q'] },
    { megabytes: 16, mkfs: EXT4 },
    { megabytes: 110, mkfs: BTRFS },
  ])
  // A superblock that says ext4 over a file system that is none.
  await run`dd if=/dev/urandom of=${disk.part(4)} bs=1024 seek=2 count=4096 conv=fsync status=none`
  const { code, message } = await catchFault(
    fixture.provisioner.apply(fixture.cloudInit, disk.device),
  )
  assert.is(code, 'provision-failed')
  assert.match(message, `no cloud-init (/etc/cloud) on ${disk.device}; looked at:`)
  assert.match(message, `\n  ${disk.part(1)} (ext4, 16.8 MB): not in it`)
  assert.match(message, `\n  ${disk.part(2)} (no file system, 8.39 MB): nothing in it`)
  assert.match(message, `\n  ${disk.part(3)} (swap, 8.39 MB): swap space`)
  assert.match(
    message,
    new RegExp(`\\n  ${disk.part(4)} \\(ext4, 16.8 MB\\): cannot be mounted: .*needs cleaning`),
  )
  assert.match(message, `\n  ${disk.part(5)} (btrfs, 115 MB): not in it, nor in a subvolume`)
  await fixture.assertLeftAsFound(disk)
})

traps(
  'does not take a btrfs for the one with the same UUID that this machine has mounted',
  async () => {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([{ megabytes: 110, mkfs: BTRFS }])
    await using twin = await createLoop({ megabytes: 110 })
    await run`dd if=${disk.part(1)} of=${twin.device} bs=1M conv=fsync status=none`
    await withMounted(disk.part(1), async (root) => {
      const fault = await catchFault(fixture.provisioner.apply(fixture.cloudInit, twin.device))
      assert.match(fault.message, /btrfs with the UUID of one that is mounted on this machine/)
      assert.equal(await readdir(root), [])
    })
    await fixture.assertLeftAsFound(twin)
  },
)

traps('says so when the kernel was not told of the partitions', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
  await run`partx --delete ${disk.device}`
  const fault = await catchFault(fixture.provisioner.apply(fixture.cloudInit, disk.device))
  assert.match(fault.message, /holds a partition table \(gpt\) and the kernel shows no partition/)
})

traps('leaves nothing mounted whenever it is cancelled', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    { megabytes: 16, mkfs: EXT4 },
    { megabytes: 16, mkfs: EXT4, fill: makeFolders('etc/cloud') },
  ])
  for (const milliseconds of [0, 40, 80, 120, 200]) {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(), milliseconds)
    const { signal } = abort
    const outcome = await fixture.provisioner
      .apply(fixture.cloudInit, disk.device, { signal })
      .catch((error: unknown) => error)
    clearTimeout(timer)
    assert.ok(outcome === undefined || (outcome instanceof Fault && outcome.code === 'cancelled'))
    await fixture.assertLeftAsFound(disk)
  }
})

traps.run()
