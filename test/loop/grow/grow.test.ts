/** --grow with real file systems: they fill the disk, judged by their own checkers. */
import { chmod, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { withMounted } from '#test/support/disk/flashed-disk.ts'
import {
  checkFileSystem,
  type GrowingImage,
  type Kind,
  KINDS,
  listLoopsOn,
  makeGrowingImage,
  PART_OFFSET,
  readLastPartition,
  readSize,
} from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  assertBlank,
  assertSame,
  flash,
  isFree,
  makeStale,
  readDisk,
  untilFree,
} from '#test/support/disk/writer.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { startFlash } from '#test/support/terminal/program.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('growing what was flashed')
const run = $({ quiet: true, nothrow: true })
const MIB = 1 << 20

const grow = ({ path }: Pick<GrowingImage, 'path'>, device: string, ...more: readonly string[]) =>
  runFlasher(['flash', '--image', path, '--target', device, '--grow', ...more])

for (const kind of KINDS) {
  test(`${kind}: partition and file system fill the disk`, async () => {
    await using image = await makeGrowingImage(kind)
    const sizeBytes = image.bytes + 301 * MIB + 512
    await using loop = await createLoop({ sizeBytes })
    const { device } = loop
    const { code, stderr } = await grow(image, device, '--yes')
    assert.is(code, 0, stderr)
    assert.match(stderr, '[writing] grow\n[synced]')
    assert.match((await run`sgdisk --verify ${device}`).stdout, 'No problems found')
    const bytes = await readLastPartition(device)
    const most = sizeBytes - PART_OFFSET - MIB
    assert.ok(bytes <= most && bytes > most - MIB, `${bytes} of ${most}`)
    const grown = await readSize(device, kind)
    assert.ok(grown <= bytes && grown > bytes - MIB, `${grown} of ${bytes}`)
    await checkFileSystem(device, kind)
    assert.equal(await listLoopsOn(device), [])
    assert.ok(await isFree(device))
  })
}

test('an MBR grows as well, also unverified', async () => {
  await using image = await makeGrowingImage('ext4', {
    label: 'dos',
    before: 'start=2048,size=2048,type=c',
  })
  await using loop = await createLoop({ megabytes: 64 })
  const { code, stderr, stdout } = await grow(image, loop.device, '--yes', '--no-verify')
  assert.is(code, 0, stderr)
  assert.match(stdout, /^Grow +the last partition and its file system fill the disk$/m)
  // It has no backup that could be moved, and nobody says so.
  assert.not.match(stdout + stderr, /GPT/i)
  const both = await grow(image, loop.device, '--yes', '--fix-gpt')
  assert.is(both.code, 0, both.stderr)
  assert.not.match(both.stdout + both.stderr, /GPT/i)
  assert.is(await readLastPartition(loop.device), 61 * MIB)
  assert.is(await readSize(loop.device, 'ext4'), 61 * MIB)
  await checkFileSystem(loop.device, 'ext4')
})

test("a disk of the image's own size gets the image", async () => {
  await using image = await makeGrowingImage('ext4')
  await using loop = await createLoop({ sizeBytes: image.bytes })
  const { code, stderr } = await grow(image, loop.device, '--yes')
  assert.is(code, 0, stderr)
  await checkFileSystem(loop.device, 'ext4')
  assert.match((await run`sgdisk --verify ${loop.device}`).stdout, 'No problems found')
})

const REFUSED = [
  ['swap behind it', { after: `start=20480,size=2048,type=S` }, /its last partition is swap space/],
  [
    'a logical partition behind it',
    { label: 'dos', after: 'start=20480,size=4096,type=5' },
    /its last partition is a logical one/,
  ],
  [
    'an empty partition behind it',
    { after: 'start=20480,size=2048' },
    /holds an unknown file system/,
  ],
] as const

for (const [what, options, words] of REFUSED) {
  test(`an image with ${what} is refused before the disk is touched`, async () => {
    await using image = await makeGrowingImage('ext4', options)
    await using loop = await createLoop({ megabytes: 32 })
    const { device } = loop
    const stale = await makeStale(device)
    for (const how of ['--yes', '--dry-run']) {
      const { code, stdout } = await grow(image, device, how, '--json')
      assert.is(code, 1)
      assert.match(stdout, words)
      assert.match(stdout, '"hint": "Flash without --grow."')
    }
    assertSame(await readDisk(device), stale)
  })
}

test('what cannot be looked into before is refused once it is written, and the disk is left blank', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  const { device } = loop
  // Its one partition begins before the first MiB ends.
  const early = createMemorySource(makeDiskImage(5 * MIB), { name: 'disk.img' })
  const refused = await faultOf(() => flash({ source: early, device, grow: true }))
  assert.match(refused.message, 'its last partition begins in the first MiB')
  await using image = await makeGrowingImage('ext4', { after: 'start=20480,size=2048' })
  const stale = await makeStale(device)
  assert.ok(!stale.subarray(0, 4096).every((byte) => byte === 0))
  const piped = await runFlasher(
    ['flash', '--image', '-', '--format', 'img', '--target', device, '--grow', '--yes'],
    { input: await readFile(image.path) },
  )
  assert.is(piped.code, 1)
  assert.match(piped.stderr, 'holds an unknown file system')
  await assertBlank(device)
})

test('a btrfs grows on several disks at once, though they all have its UUID', async () => {
  await using image = await makeGrowingImage('btrfs')
  const sizeBytes = image.bytes + 301 * MIB
  await using one = await createLoop({ sizeBytes })
  await using other = await createLoop({ sizeBytes })
  const { code, stderr } = await grow(image, one.device, '--target', other.device, '--yes')
  assert.is(code, 0, stderr)
  for (const { device } of [one, other]) {
    assert.ok((await readSize(device, 'btrfs')) > image.bytes)
    await checkFileSystem(device, 'btrfs')
  }
})

test('a damaged file system is no reason to leave half a system', async () => {
  await using image = await makeGrowingImage('ext4')
  await run`dd if=/dev/zero of=${image.path} bs=4096 seek=513 count=64 conv=notrunc`
  await using loop = await createLoop({ megabytes: 32 })
  const { code, stderr } = await grow(image, loop.device, '--yes')
  assert.is(code, 1)
  assert.match(stderr, /e2fsck: |resize2fs: /)
  await assertBlank(loop.device)
  assert.equal(await listLoopsOn(loop.device), [])
})

const runStrictly = $({ quiet: true })
const GIB = 2 ** 30

const MKFS: Readonly<Record<string, readonly string[]>> = {
  // resize2fs 1.47.0 breaks it where the inode tables move.
  orphan_file: ['-b1024', '-Oorphan_file,metadata_csum'],
  'no journal': ['-O^has_journal'],
  ext2: ['-text2'],
  ext3: ['-text3'],
  // This kernel may not be able to mount it: then the check alone decides.
  casefold: ['-Ocasefold'],
}

for (const [what, options] of Object.entries(MKFS)) {
  test(`ext with ${what} grows far and is sound`, async () => {
    await using image = await makeGrowingImage('ext4')
    // Smaller than its partition: its blocks are moved less, its tables more.
    await runStrictly`mkfs.ext4 -q -F -E offset=${PART_OFFSET} ${options} ${image.path} 8M`
    const sizeBytes = (what === 'orphan_file' ? 36 : 1) * GIB
    await using loop = await createLoop({ sizeBytes })
    const { device } = loop
    const argv = ['--image', image.path, '--target', device, '--grow', '--yes']
    const { code, stderr } = await runFlasher(['flash', ...argv])
    assert.is(code, 0, stderr)
    await checkFileSystem(device, 'ext4')
    assert.ok((await readSize(device, 'ext4')) > sizeBytes - 4 * MIB)
    const part = (
      await runStrictly`losetup --find --show --offset ${PART_OFFSET} --read-only ${device}`
    ).stdout.trim()
    try {
      const { stdout } = await runStrictly`dumpe2fs -h ${part}`
      assert.is(/orphan_file/.test(stdout), what === 'orphan_file')
      if (what !== 'casefold') await withMounted(part, async () => {}, 'ro')
    } finally {
      await runStrictly`losetup --detach ${part}`
    }
    // The kernel lets go of a detached one when its last reader does.
    const isLetGo = async () => (await listLoopsOn(device)).length === 0
    await waitUntil(isLetGo, () => `${device} is still under a loop device`)
    assert.ok(await isFree(device))
  })
}

test('ext4 with bigalloc is refused by name before the disk is touched', async () => {
  await using image = await makeGrowingImage('ext4')
  await runStrictly`mkfs.ext4 -q -F -E offset=${PART_OFFSET} -O bigalloc ${image.path} 8M`
  await using loop = await createLoop({ megabytes: 64 })
  const argv = ['--image', image.path, '--target', loop.device, '--grow', '--dry-run']
  const { code, stderr } = await runFlasher(['flash', ...argv])
  assert.is(code, 1)
  assert.match(stderr, /ext4 with bigalloc clusters, which resize2fs does not grow/)
})

/** The tool as it is, but it leaves damage; what it is asked to only look at stays as it is. */
const DAMAGING: readonly (readonly [Kind, tool: string, seek: number, words: RegExp])[] = [
  ['ext4', 'resize2fs', 4, /e2fsck finds errors in it/],
  ['ntfs', 'ntfsresize', 16, /ntfsresize finds errors in it/],
]

for (const [kind, tool, seek, words] of DAMAGING) {
  test(`${kind} that is damaged by ${tool} leaves a disk that does not boot`, async () => {
    await using image = await makeGrowingImage(kind)
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-tool-'))
    const own = (await runStrictly`sh -c ${`command -v ${tool}`}`).stdout.trim()
    const script = `#!/bin/sh
      case " $* " in *' --check '*) exec ${own} "$@" ;; esac
      ${own} "$@" || exit
      for node; do :; done
      tr '\\0' '\\377' </dev/zero | dd of="$node" bs=1024 seek=${seek} count=64 conv=notrunc status=none`
    await writeFile(join(folder.path, tool), script)
    await chmod(join(folder.path, tool), 0o755)
    await using loop = await createLoop({ megabytes: 64 })
    const { device } = loop
    const argv = ['--image', image.path, '--target', device, '--grow', '--yes']
    const { code, stderr } = await runFlasher(['flash', ...argv], {
      env: { PATH: `${folder.path}:${process.env['PATH'] ?? ''}` },
    })
    assert.is(code, 1)
    assert.match(stderr, 'the file system was damaged while it was grown')
    assert.match(stderr, words)
    assert.match(stderr, 'Flash without --grow')
    await assertBlank(device)
    assert.equal(await listLoopsOn(device), [])
  })
}

const SIZE = 24
/** Slow enough that the growth, too, takes a share of the time. */
const SLOW_DISK = ['--filter=delay', 'memory', `${SIZE}M`, 'wdelay=10ms', 'rdelay=4ms']

async function start(image: Buffer, device: string) {
  const flashing = startFlash([image], ['--format', 'img', '--target', device, '--grow'])
  await flashing.started
  return flashing
}

async function judge(device: string): Promise<'blank' | 'complete'> {
  if ((await readDisk(device, 0, 4096)).every((byte) => byte === 0)) return 'blank'
  const bytes = SIZE * MIB - PART_OFFSET - MIB
  assert.is(await readLastPartition(device), bytes)
  assert.is(await readSize(device, 'ext4'), bytes)
  await checkFileSystem(device, 'ext4')
  return 'complete'
}

async function untilDetached(device: string) {
  for (let tries = 0; (await listLoopsOn(device)).length > 0; tries += 1) {
    assert.ok(tries < 1000, `a loop device on ${device} is left`)
    await sleep(20)
  }
}

test(`SIGKILL at ${KILLS} moments, most of them in the growth; then a whole flash`, async () => {
  await using image = await makeGrowingImage('ext4')
  const bytes = await readFile(image.path)
  await using disk = await createFaultyDisk({ nbdkit: SLOW_DISK })
  const { device } = disk
  const flashWhole = async () => {
    const { ended } = await start(bytes, device)
    const begun = performance.now()
    assert.is((await ended).by, 0)
    assert.is(await judge(device), 'complete')
    return performance.now() - begun
  }
  const lasts = await flashWhole()
  const random = createSeededRandom(21)
  for (let n = 0; n < KILLS; n += 1) {
    const share = n % 3 === 0 ? random() : 0.4 + 0.6 * random()
    const { child, ended } = await start(bytes, device)
    await sleep(share * lasts)
    child.kill('SIGKILL')
    const { by } = await ended
    await untilFree(device)
    await untilDetached(device)
    const left = await judge(device)
    assert.ok(by === 'SIGKILL' || left === 'complete', `${left} (${by}) after ${share} of the time`)
  }
  await flashWhole()
})

test.run()
