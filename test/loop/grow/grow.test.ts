/** --grow with real file systems: they fill the disk, judged by their own checkers. */
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import {
  checkFileSystem,
  KINDS,
  listLoopsOn,
  makeGrowingImage,
  PART_OFFSET,
  readLastPartition,
  readSize,
  type GrowingImage,
} from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import {
  assertBlank,
  assertSame,
  flash,
  isFree,
  makeStale,
  readDisk,
} from '#test/support/disk/writer.ts'

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
    /holds no file system that is known/,
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
  assert.match(piped.stderr, 'holds no file system that is known')
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
test.run()
