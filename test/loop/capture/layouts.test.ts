/** Partitions that blkid misjudges or cannot name: all their bytes are in the image, or it is refused. */
import { mkdtempDisposable, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { captureLayouts } from '#test/support/capture/layouts/layout-trip.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('captured layouts')
const run = $({ quiet: true })
const MIB = 1 << 20

const scratch = () => mkdtempDisposable(join(tmpdir(), 'flasher-layouts-'))

const capture = (source: string, output: string, ...more: readonly string[]) =>
  runFlasher(['capture', '--source', source, '--output', output, ...more])

const partition = (path: string, ...lines: readonly string[]) =>
  run({
    input: `${lines.join('\n')}\n`,
  })`sfdisk --quiet --wipe=never --wipe-partitions=never ${path}`

async function put(path: string, bytes: Buffer, offset: number) {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, offset)
}

/** A file system in the file from `offset` on. */
const makeExt4 = (path: string, offset: number, megabytes: number) =>
  run`mkfs.ext4 -q -F -O ^metadata_csum -E offset=${offset} ${path} ${megabytes}M`

test('an extended partition with an old file system below it is in the image, and not generalized', async () => {
  await using folder = await scratch()
  await using disk = await createLoop({ megabytes: 48 })
  await makeExt4(disk.backing, MIB, 46)
  await partition(
    disk.backing,
    'label: dos',
    'start=2048, size=94208, type=5',
    'start=4096, size=90112, type=83',
  )
  // Free blocks of the old file system.
  await put(disk.backing, makeNoise(4 * MIB, 3), 30 * MIB)
  const output = join(folder.path, 'a.img.zst')
  const { code, stdout, stderr } = await capture(disk.device, output, '--json')
  assert.is(code, 0, stderr)
  const { parts, warnings } = JSON.parse(stdout)
  assert.equal(
    parts.map(({ number, whole }: Readonly<Record<string, unknown>>) => [number, whole]),
    [[1, 'its logical partitions are not analysed']],
  )
  assert.match(warnings.join(), 'may hold the identity')
  await run`zstd -qdf ${output} -o ${join(folder.path, 'raw')}`
  await run`cmp ${join(folder.path, 'raw')} ${disk.backing}`
  const refused = await capture(disk.device, join(folder.path, 'b.img.zst'), '--generalize')
  assert.is(refused.code, 1)
  assert.match(refused.stderr, 'logical partitions are not analysed')
})

test('a file system beside a partition table in one partition is read whole', async () => {
  await using folder = await scratch()
  await using disk = await createLoop({ megabytes: 48 })
  await partition(disk.backing, 'label: gpt', 'start=2048, size=81920')
  await makeExt4(disk.backing, MIB, 40)
  const inner = join(folder.path, 'inner')
  await run`truncate -s 40M ${inner}`
  await partition(inner, 'label: dos', 'start=2048, size=4096')
  await run`dd if=${inner} of=${disk.backing} bs=512 count=1 seek=2048 conv=notrunc status=none`
  const output = join(folder.path, 'a.img.zst')
  const { stdout, stderr } = await capture(disk.device, output, '--json', '--dry-run')
  const { parts, warnings } = JSON.parse(stdout)
  assert.is(parts[0].whole, 'it also has a partition table', stderr)
  assert.match(warnings.join(), 'may hold the identity')
})

test('an ext4 that was not unmounted cleanly is warned of', async () => {
  await using folder = await scratch()
  await using disk = await createLoop({ megabytes: 48 })
  await partition(disk.backing, 'label: gpt', 'start=2048, size=81920')
  await makeExt4(disk.backing, MIB, 40)
  const output = join(folder.path, 'a.img.zst')
  const warningsOf = async () =>
    JSON.parse((await capture(disk.device, output, '--json', '--dry-run')).stdout).warnings
  assert.equal(await warningsOf(), [])
  await put(disk.backing, Buffer.alloc(2), MIB + 1024 + 0x3a)
  assert.match((await warningsOf()).join(), 'may hold the identity')
})

test('--generalize passes partitions that hold nothing, and is refused for what is not known', async () => {
  await using folder = await scratch()
  await using disk = await createLoop({ megabytes: 24 })
  await partition(
    disk.backing,
    'label: gpt',
    'start=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649',
    'start=4096, size=20480',
  )
  await put(disk.backing, makeNoise(MIB, 3), MIB)
  const attempt = () =>
    capture(disk.device, join(folder.path, 'a.img.zst'), '--generalize', '--dry-run')
  const passed = await attempt()
  assert.is(passed.code, 0, passed.stderr)
  await put(disk.backing, Buffer.from('x'), 12 * MIB - 1)
  const refused = await attempt()
  assert.is(refused.code, 1)
  assert.match(refused.stderr, 'there is a partition with unknown contents')
})

const LAYOUTS = 8

test(`${LAYOUTS} layouts lose nothing`, async () => {
  const { lost, freedBytes } = await captureLayouts(Array.from({ length: LAYOUTS }, (_, at) => at))
  assert.equal(lost, [])
  // What is surely free is left out.
  assert.ok(freedBytes > 20 * MIB, String(freedBytes))
})

test.run()
