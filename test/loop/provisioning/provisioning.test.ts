/** cloud-init seeds on real file systems: found, written, and nothing else changed. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { type Provisioning, SEED_FOLDER } from '#engine/flash/rules/provisioning.ts'
import { readPartFile } from '#test/support/disk/first-boot-image.ts'
import {
  createFlashedDisk,
  listTop,
  makeFolders,
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
  type RootLayout,
  type SeededImage,
  SYNTHETIC,
  USER_DATA,
  WHOLE_ROOT,
} from '#test/support/disk/provisioning-fixture.ts'
import { assertBlank, isFree, readDisk } from '#test/support/disk/writer.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

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

const flows = suite('cijoe')

flows('gets the largest volume, the arguments in order, and a configuration', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    { megabytes: 8, mkfs: EXT4 },
    { megabytes: 24, mkfs: EXT4 },
    { megabytes: 16, mkfs: EXT4 },
  ])
  await fixture.installCijoe(`
    pwd > ${fixture.at('said')}; for word; do echo "$word"; done >> ${fixture.at('said')}
    cat "$3" >> ${fixture.at('said')}; echo made > "$FLASHER_ROOTFS/by-the-workflow"
    mkdir "$FLASHER_ROOTFS/dev" && mount --bind /dev "$FLASHER_ROOTFS/dev"
    setsid sleep 1000 < "$FLASHER_ROOTFS/by-the-workflow" > /dev/null 2>&1 &`)
  await fixture.provisioner.check(fixture.cijoe)
  await fixture.provisioner.apply(fixture.cijoe, disk.device)
  await fixture.assertLeftAsFound(disk)
  const [cwd, monitor, dash, config, workflow, ...toml] = (
    await readFile(fixture.at('said'), 'utf8')
  ).split('\n')
  assert.equal(
    [cwd, monitor, dash, workflow],
    [process.cwd(), '--monitor', '-c', fixture.at('flow.yaml')],
  )
  assert.match(config ?? '', fixture.at('tmp'))
  assert.equal(toml, ['[cijoe.workflow]', 'fail_fast = true', ''])
  assert.ok((await listTop(disk.part(2))).includes('by-the-workflow'))
})

flows('gets the root subvolume of btrfs, and the configuration that was given', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([
    {
      megabytes: 128,
      mkfs: BTRFS,
      async fill(top) {
        for (const name of ['@', '@home']) await run`btrfs subvolume create ${join(top, name)}`
        await makeFolders('@/etc')(top)
      },
    },
  ])
  await fixture.installCijoe(
    `ls "$FLASHER_ROOTFS" > ${fixture.at('said')}; echo "$3" >> ${fixture.at('said')}`,
  )
  await fixture.provisioner.apply({ ...fixture.cijoe, config: 'some.toml' }, disk.device)
  assert.is(await readFile(fixture.at('said'), 'utf8'), 'etc\nsome.toml\n')
  await fixture.assertLeftAsFound(disk)
})

flows('fails with the exit code of the workflow', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
  await fixture.installCijoe('exit 7')
  const fault = await catchFault(fixture.provisioner.apply(fixture.cijoe, disk.device))
  assert.is(fault.code, 'provision-failed')
  assert.match(fault.message, /cijoe workflow exited 7/)
  await fixture.assertLeftAsFound(disk)
})

flows('refuses a largest volume that cannot be mounted', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }, { megabytes: 32 }])
  await fixture.installCijoe('exit 0')
  const fault = await catchFault(fixture.provisioner.apply(fixture.cijoe, disk.device))
  assert.match(fault.message, `${disk.part(2)} (no file system, 33.6 MB): unknown contents`)
  await fixture.assertLeftAsFound(disk)
})

flows('ends on abort, whatever it started and however deaf it is', async () => {
  for (const script of ['sleep 1000', 'trap "" INT TERM; setsid sleep 1000 & sleep 999 & wait']) {
    await using fixture = await createFixture()
    await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
    await fixture.installCijoe(
      `echo x > "$FLASHER_ROOTFS/x"; touch ${fixture.at('started')}; ${script}`,
    )
    const abort = new AbortController()
    const work = catchFault(
      fixture.provisioner.apply(fixture.cijoe, disk.device, { signal: abort.signal }),
    )
    await waitFor(fixture.at('started'), work)
    abort.abort()
    assert.is((await work).code, 'cancelled')
    await fixture.assertLeftAsFound(disk)
    const late = await catchFault(
      fixture.provisioner.apply(fixture.cloudInit, disk.device, { signal: abort.signal }),
    )
    assert.is(late.code, 'cancelled')
  }
})

flows('speaks on standard error as it goes, and leaves nothing when we are killed', async () => {
  await using fixture = await createFixture()
  await using disk = await createFlashedDisk([{ megabytes: 16, mkfs: EXT4 }])
  await fixture.installCijoe(`echo spoken; touch ${fixture.at('started')}; sleep 1000`)
  const runtime = new URL('../../../runtime/', import.meta.url).href
  const program = `
    import { createProvisioner } from '${runtime}engine/flash/provisioner.ts'
    import { createShell } from '${runtime}kit/host/shell.ts'
    const env = process.env
    const provisioner = createProvisioner({ shell: createShell({ env }), env })
    await provisioner.apply(${JSON.stringify(fixture.cijoe)}, '${disk.device}')`
  const child = run({
    env: { ...process.env, ...fixture.env },
    nothrow: true,
  })`${process.execPath} --input-type=module-typescript --eval ${program}`
  await waitFor(fixture.at('started'), child)
  process.kill(child.pid ?? 0, 'SIGKILL')
  const { stdout, stderr } = await child
  assert.equal([stdout, stderr], ['', 'spoken\n'])
  await waitUntilFree(disk.part(1))
  // Its empty mount point is all that a killed process cannot remove.
  await rm(fixture.at('tmp'), { recursive: true })
  await mkdir(fixture.at('tmp'))
  await fixture.assertLeftAsFound(disk)
})

const DEADLINE_MS = 60_000
const pause = () => new Promise<'not yet'>((done) => setTimeout(done, 20, 'not yet'))

/** Fails when the work ends before: then nothing will ever make the file. */
async function waitFor(path: string, work: Promise<unknown>) {
  const deadline = performance.now() + DEADLINE_MS
  const ended = work.then((outcome) => `ended before: ${String(outcome)}`, String)
  while ((await lstat(path).catch(() => null)) === null) {
    const news =
      performance.now() > deadline ? 'it takes too long' : await Promise.race([ended, pause()])
    if (news !== 'not yet') throw new Error(`${path} is not there: ${news}`)
  }
}

async function waitUntilFree(node: string) {
  const deadline = performance.now() + DEADLINE_MS
  for (;;) {
    const file = await open(node, constants.O_RDONLY | constants.O_EXCL).catch(() => null)
    if (file !== null) return file.close()
    if (performance.now() > deadline) throw new Error(`${node} is still in use`)
    await pause()
  }
}

const MIB = 2 ** 20

async function flash({ path, flags }: SeededImage, device: string, ...more: readonly string[]) {
  const argv = ['--image', path, '--target', device, '--yes', '--progress', 'ndjson', ...flags]
  const { code, stdout, stderr } = await runFlasher(['flash', ...argv, ...more])
  const events = [...stdout.matchAll(/"event": ?"(\w+)"/g)].flatMap(([, event]) => event ?? [])
  return { code, stderr, events: events.filter((event) => event !== 'writing') }
}

const ORDER = ['started', 'synced', 'partprobed', 'provisioning', 'done']

interface Case {
  readonly layout: RootLayout
  /** The size of the disk; absent: it is larger than the image. */
  readonly megabytes?: number
  readonly flags?: readonly string[]
}

const LOGICAL: RootLayout = {
  table: [
    'label: dos',
    'start=2048,size=2048,type=c',
    'start=4096,type=5',
    'start=6144,size=4096,type=83',
    'start=12288,size=40960,type=83',
  ],
  megabytes: 28,
  offset: 12_288 * 512,
  bytes: 20 * MIB,
}
/** Its root begins in the first MiB and ends in the last, as on old disks. */
const WHOLE: RootLayout = {
  table: ['label: dos', 'start=63,type=83'],
  megabytes: 24,
  offset: 63 * 512,
  bytes: 24 * MIB - 63 * 512,
}
const CASES: Readonly<Record<string, Case>> = {
  'in a GPT': { layout: PLAIN_ROOT },
  unverified: { layout: PLAIN_ROOT, flags: ['--no-verify'] },
  'in a GPT whose backup moves': { layout: PLAIN_ROOT, flags: ['--fix-gpt'] },
  'in a partition that grows': { layout: PLAIN_ROOT, flags: ['--grow'] },
  'in a logical partition': { layout: LOGICAL },
  'in all of an MBR disk, from sector 63 on': { layout: WHOLE, megabytes: 24 },
  'in all of a GPT disk': { layout: WHOLE_ROOT, megabytes: 24 },
  'on a bare disk, after its ends': {
    layout: { table: [], megabytes: 24, offset: 0, bytes: 24 * MIB },
  },
}

for (const [where, { layout, megabytes = 64, flags = [] }] of Object.entries(CASES)) {
  flows(`the seed is written ${where}`, async () => {
    await using image = await makeSeededImage(layout)
    await using disk = await createLoop({ megabytes })
    const { device } = disk
    const { code, stderr, events } = await flash(image, device, ...flags)
    assert.is(code, 0, stderr)
    assert.equal(events, ORDER)
    const path = `${SEED_FOLDER}/user-data`
    assert.is(await readPartFile(device, layout.offset, path), USER_DATA)
    assert.equal(await listLoopsOn(device), [])
    assert.ok(await isFree(device))
    // The table that the kernel reads is the image's.
    const head = await readDisk(device, 0, 2 * 512)
    if (layout.table[0] === 'label: gpt') assert.is(head.toString('latin1', 512, 520), 'EFI PART')
  })
}

for (const [where, { layout }] of Object.entries({
  'in a table': { layout: { ...PLAIN_ROOT, folder: 'etc' } },
  'on a bare disk': {
    layout: { table: [], megabytes: 24, offset: 0, bytes: 24 * MIB, folder: 'etc' },
  },
})) {
  flows(`an image without cloud-init ${where} is left without its ends`, async () => {
    await using image = await makeSeededImage(layout)
    await using disk = await createLoop({ megabytes: 64 })
    const { code, stderr, events } = await flash(image, disk.device)
    assert.is(code, 1)
    assert.match(stderr, 'no cloud-init (/etc/cloud)')
    assert.match(stderr, 'has no partition table and cannot boot')
    assert.equal(events, [...ORDER.slice(0, -1), 'failed'])
    await assertBlank(disk.device)
    assert.equal(await listLoopsOn(disk.device), [])
  })
}

flows('a workflow that fails leaves the disk without its ends', async () => {
  await using image = await makeSeededImage(PLAIN_ROOT)
  await using fixture = await createFixture()
  await using disk = await createLoop({ megabytes: 64 })
  const { device } = disk
  for (const [script, code] of [
    ['exit 7', 1],
    ['exit 0', 0],
  ] as const) {
    await fixture.installCijoe(script)
    const argv = ['--image', image.path, '--target', device, '--yes', '--provision', 'cijoe']
    const ended = await runFlasher(
      ['flash', ...argv, '--cijoe-workflow', fixture.at('flow.yaml')],
      {
        env: fixture.env,
      },
    )
    assert.is(ended.code, code, ended.stderr)
    assert.match(ended.stderr, /^\[partprobed\]\n\[provisioning\] cijoe\n/m)
    if (code === 0)
      assert.ok((await readDisk(device, 512, 512)).toString('latin1').startsWith('EFI PART'))
    else {
      assert.match(
        ended.stderr,
        /cijoe workflow exited 7[^]*has no partition table and cannot boot/,
      )
      await assertBlank(device)
    }
    assert.ok(await isFree(device))
  }
})

seeds.run()
checks.run()
flows.run()
