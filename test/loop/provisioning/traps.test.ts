/** Images made to harm the host that provisions them, and broken ones. */
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createFlasher } from '#engine/flash/flasher.ts'
import { type FlashOrder, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { createImageFile, readPartFile } from '#test/support/disk/first-boot-image.ts'
import {
  createFlashedDisk,
  type FlashedDisk,
  makeFolders,
  type Part,
  withMounted,
} from '#test/support/disk/flashed-disk.ts'
import { listLoopsOn } from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import {
  catchFault,
  createFixture,
  makeSeededImage,
  PLAIN_ROOT,
  readSeed,
  SYNTHETIC,
  USER_DATA,
  WHOLE_ROOT,
} from '#test/support/disk/provisioning-fixture.ts'
import { makeStale, readDisk, untilFree } from '#test/support/disk/writer.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { startFlash } from '#test/support/terminal/program.ts'

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
  assert.match(message, `\n  ${disk.part(2)} (no file system, 8.39 MB): unknown contents`)
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
      assert.match(fault.message, /btrfs with the same UUID as one that is mounted on this machine/)
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
  assert.match(fault.message, /has a partition table \(gpt\), but the kernel shows no partitions/)
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

/** A root with a cloud-init that is configured so. */
const rootWith = (files: Readonly<Record<string, string>>, mkfs = ['mkfs.ext4', '-q']): Part => ({
  megabytes: 16,
  mkfs,
  async fill(root) {
    await makeFolders('etc/cloud/cloud.cfg.d')(root)
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true })
      await writeFile(join(root, path), text)
    }
  },
})

const INSTALLED = { 'etc/cloud/cloud.cfg.d/90-installer.cfg': 'datasource_list: [None]\n' }
const OWN_FILE = 'etc/cloud/cloud.cfg.d/99-flasher.cfg'

const readOwn = (root: string) => readFile(join(root, OWN_FILE), 'utf8')

traps('a file of ours makes cloud-init read it, and the output names that file', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([rootWith(INSTALLED), rootWith({})])
  const notes: string[] = []
  const warn = (words: string) => void notes.push(words)
  await fixture.provisioner.apply(fixture.cloudInit, disk.device, { warn })
  await fixture.assertLeftAsFound(disk)
  assert.match(
    await withMounted(disk.part(1), readOwn, 'ro'),
    /^datasource_list: \[NoCloud, None\]$/m,
  )
  assert.is((await readSeed(disk.part(1))).userData, '#cloud-config\npassword: secret\n')
  assert.match(notes.join(), /datasource_list in \/etc\/cloud\/cloud.cfg.d\/90-installer.cfg/)
})

traps('is refused where that would not help', async () => {
  const refused: readonly (readonly [string, string, RegExp])[] = [
    ['etc/cloud/ds-identify.cfg', 'policy: disabled\n', /policy .* switches cloud-init off/],
    ['var/lib/cloud/instance/manual-clean', '', /trust the data source/],
    [
      'etc/cloud/cloud.cfg',
      'datasource:\n  NoCloud:\n    user-data: x\n    meta-data: {}\n',
      /already has user-data/,
    ],
  ]
  for (const [path, text, words] of refused) {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([rootWith({ [path]: text })])
    const fault = await catchFault(fixture.provisioner.apply(fixture.cloudInit, disk.device))
    assert.is(fault.code, 'provision-failed')
    assert.match(fault.message, words)
    await fixture.assertLeftAsFound(disk)
  }
})

const CIDATA: Part = { megabytes: 4, mkfs: ['mkfs.vfat', '-n', 'CIDATA'] }
/** Hashes of 16 MiB. */
const HASHES: Part = {
  megabytes: 4,
  mkfs: [
    'sh',
    '-c',
    `printf 'verity\\0\\0' | dd of="$0" conv=notrunc status=none
    printf '\\020' | dd of="$0" bs=1 seek=65 conv=notrunc status=none
    printf '\\020' | dd of="$0" bs=1 seek=73 conv=notrunc status=none`,
  ],
}
/** A file system, and hashes in what is left of its partition. */
const HASHED = rootWith({}, [
  'sh',
  '-c',
  `mkfs.ext4 -q "$0" 8M && printf 'verity\\0\\0' | dd of="$0" bs=1M seek=8 conv=notrunc status=none`,
])

traps('is refused before the first byte where the image can be read there', async () => {
  await using fixture = await createFixture()
  const cases: readonly (readonly [readonly Part[], Partial<FlashOrder['options']>, RegExp])[] = [
    [[rootWith({}), CIDATA], {}, /user-data cannot be written: .* labelled CIDATA/],
    [[rootWith({}), HASHES], {}, /user-data cannot be written: partition 1 is protected by dm-ver/],
    [[HASHED], {}, /partition 1 is protected by dm-verity/],
    [[HASHED], { grow: true }, /cannot be grown: .* protected by dm-verity/],
  ]
  for (const [parts, options, words] of cases) {
    await using image = await createImageFile(parts)
    await using disk = await createLoop({ megabytes: 40 })
    const before = await makeStale(disk.device)
    const order: FlashOrder = {
      image: image.path,
      format: null,
      targets: [{ path: disk.device }],
      options: { ...WHOLE_DISK, ...options },
      ...(options.grow === true ? {} : { provisioning: fixture.cloudInit }),
    }
    const flasher = createFlasher({ env: fixture.env })
    const { signal } = new AbortController()
    const [outcome] = await flasher.flash(order, { signal, onEvent() {} })
    assert.ok(
      outcome?.kind === 'failed' && outcome.code === 'plan-refused',
      JSON.stringify(outcome),
    )
    assert.match(outcome.reason, words)
    assert.ok((await readDisk(disk.device)).equals(before))
  }
})

traps(
  'is refused before the first byte where nothing can be mounted, and so is a growth',
  async () => {
    await using fixture = await createFixture()
    await using image = await createImageFile([rootWith({})])
    await using disk = await createLoop({ megabytes: 40 })
    const before = await makeStale(disk.device)
    const flasher = createFlasher({ env: { ...fixture.env, TMPDIR: fixture.at('nowhere') } })
    const { signal } = new AbortController()
    const base = { image: image.path, format: null, targets: [{ path: disk.device }] }
    for (const order of [
      { ...base, options: WHOLE_DISK, provisioning: fixture.cloudInit },
      { ...base, options: { ...WHOLE_DISK, grow: true } },
    ]) {
      const [outcome] = await flasher.flash(order, { signal, onEvent() {} })
      assert.ok(
        outcome?.kind === 'failed' && outcome.code === 'plan-refused',
        JSON.stringify(outcome),
      )
      assert.match(outcome.reason, /no mount point can be made in .*nowhere/)
      assert.ok((await readDisk(disk.device)).equals(before))
    }
  },
)

traps('is refused where cloud-init would ignore the text', async () => {
  await using fixture = await createFixture()
  await writeFile(fixture.at('user-data'), 'users: []\n')
  const fault = await catchFault(fixture.provisioner.check(fixture.cloudInit))
  assert.is(fault.code, 'input-invalid')
  assert.match(fault.message, /has to be #cloud-config/)
  await run`rm ${fixture.at('user-data')}`
})

/** Slow enough that the steps at the end take a share of the time. */
const slowDisk = (megabytes: number) => [
  '--filter=delay',
  'memory',
  `${megabytes}M`,
  'wdelay=10ms',
  'rdelay=4ms',
]

const isBlank = async (device: string) =>
  (await readDisk(device, 0, 4096)).every((byte) => byte === 0)

for (const [what, layout, megabytes] of [
  ['in the middle of the disk', PLAIN_ROOT, 32],
  ['on all of it', WHOLE_ROOT, 24],
] as const) {
  traps(`a root ${what}: SIGKILL at ${KILLS} moments, most of them near the end`, async () => {
    await using image = await makeSeededImage(layout)
    const bytes = await readFile(image.path)
    await using disk = await createFaultyDisk({ nbdkit: slowDisk(megabytes) })
    const { device } = disk
    const start = async () => {
      const flash = startFlash([bytes], ['--format', 'img', '--target', device, ...image.flags])
      await flash.started
      return flash
    }
    async function judge() {
      if (await isBlank(device)) return 'blank'
      const path = `${SEED_FOLDER}/user-data`
      assert.is(
        await readPartFile(device, layout.offset, path),
        USER_DATA,
        'boots without its seed',
      )
      return 'seeded'
    }
    const whole = await start()
    const begun = performance.now()
    const { by, events } = await whole.ended
    const lasts = performance.now() - begun
    assert.is(by, 0)
    assert.equal(events.slice(-4), ['synced', 'partprobed', 'provisioning', 'done'])
    assert.is(await judge(), 'seeded')
    const random = createSeededRandom(27)
    const seen = { blank: 0, seeded: 0 }
    for (let n = 0; n < KILLS; n += 1) {
      const share = n % 4 === 0 ? random() : 0.6 + 0.42 * random()
      const { child, ended } = await start()
      // The first comes as soon as the disk is blank, however busy the machine is.
      if (n === 0) while (!(await isBlank(device))) await sleep(5)
      else await sleep(share * lasts)
      child.kill('SIGKILL')
      const end = await ended
      await untilFree(device)
      for (let tries = 0; (await listLoopsOn(device)).length > 0; tries += 1) {
        assert.ok(tries < 1000, `a loop device on ${device} is left`)
        await sleep(20)
      }
      const left = await judge()
      seen[left] += 1
      assert.ok(end.by === 'SIGKILL' || left === 'seeded', `${left} (${end.by}) after ${share}`)
    }
    assert.ok(seen.blank > 0, JSON.stringify(seen))
  })
}

traps.run()
