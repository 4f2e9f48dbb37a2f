/** `flasher verify`: each byte of a disk against each format of an image, on real loop devices. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createTally } from '#engine/verify/rules/disk-comparison.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { ENCODINGS } from '#test/support/disk/encodings.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('verify command')
const MIB = 1024 * 1024

const put = async (path: string, bytes: Uint8Array, at = 0) => {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, at)
  await file.sync()
}

const flip = async (path: string, at: number) => {
  await using file = await open(path, 'r+')
  const byte = Buffer.alloc(1)
  await file.read(byte, 0, 1, at)
  await file.write(Buffer.of(byte.readUInt8() ^ 1), 0, 1, at)
  await file.sync()
}

const verify = (...words: readonly string[]) => runFlasher(['verify', ...words])

test('each format: an equal disk, then one bit of it changed at every kind of place', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-verify-'))
  const image = makeDiskImage(5 * MIB + 512)
  for (const { name, format, encode } of ENCODINGS) {
    const path = join(folder.path, `image.${format}`)
    writeFileSync(path, encode(image))
    await using loop = await createLoop({ megabytes: 7 })
    // What lies behind the image is none of its business.
    await put(loop.device, makeNoise(7 * MIB, 3))
    await put(loop.device, image)
    const compare = async () => {
      const { code, stdout } = await verify(loop.device, '--image', path, '--json')
      return { code, ...JSON.parse(stdout) }
    }
    const equal = await compare()
    assert.equal([equal.code, equal.differing_bytes], [0, 0], name)
    assert.is(equal.compared_bytes, image.length)
    const places = name === 'zst' ? [0, 511, MIB - 1, 3 * MIB + 77, image.length - 1] : [MIB + 5]
    for (const at of places) {
      await flip(loop.device, at)
      const { code, differing_bytes, areas, error } = await compare()
      assert.equal([code, differing_bytes, error.code], [1, 1, 'verify-failed'], `${name} ${at}`)
      const [first] = areas.filter((area: { differing_bytes: number }) => area.differing_bytes > 0)
      assert.is(first.first_difference, at)
      await flip(loop.device, at)
    }
    assert.is((await compare()).code, 0)
  }
})

test('what differs is counted by partition, and what nothing may have written to is named', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-verify-'))
  const path = join(folder.path, 'a.img')
  writeFileSync(path, Buffer.alloc(8 * MIB))
  const script = 'label: gpt\nstart=2048, size=2048\nstart=6144, size=2048\n'
  execFileSync('sfdisk', ['-q', path], { input: script })
  await put(path, Buffer.from('hsqs'), 3 * MIB)
  await using loop = await createLoop({ megabytes: 9 })
  await put(loop.device, readFileSync(path))
  await put(loop.device, makeNoise(100, 1).fill(7), MIB + 4000)
  await put(loop.device, Buffer.of(1), 4 * MIB - 1)
  const { code, stdout, stderr } = await verify(loop.device, '--image', path)
  assert.is(code, 1)
  assert.match(
    stdout,
    `partition 1: 1.05 MB (1048576 bytes), 100 bytes differ, the first at ${MIB + 4000}`,
  )
  assert.match(stdout, 'partition 2 (squashfs, read-only)')
  assert.match(stdout, `1 byte differs, the first at ${4 * MIB - 1}`)
  assert.match(stdout, 'not compared')
  assert.match(stderr, `a.img in 101 bytes, the first at ${MIB + 4000}`)
})

test('a disk that is mounted, too short, or no disk, and an image that is damaged, are refused', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-verify-'))
  const path = join(folder.path, 'a.img')
  writeFileSync(path, makeDiskImage(5 * MIB))
  await using loop = await createLoop({ megabytes: 4 })
  const short = await verify(loop.device, '--image', path)
  assert.is(short.code, 1)
  assert.match(short.stderr, 'is shorter than the image')
  assert.match((await verify(path, '--image', path)).stderr, 'not a block device')
  assert.match((await verify('/dev/nothing', '--image', path)).stderr, 'does not exist')
  const wrong = await verify(loop.device, '--image', path, '--sha256', 'a'.repeat(64))
  assert.is(wrong.code, 1)
  execFileSync('mkfs.ext4', ['-q', loop.device])
  const mount = join(folder.path, 'mount')
  execFileSync('mkdir', [mount])
  execFileSync('mount', [loop.device, mount])
  const mounted = await verify(loop.device, '--image', path).finally(() =>
    execFileSync('umount', [mount]),
  )
  assert.match(mounted.stderr, 'mounted')
  await put(loop.device, readFileSync(path).subarray(0, 4 * MIB))
  writeFileSync(`${path}.sha256`, `${'b'.repeat(64)}  a.img\n`)
  writeFileSync(path, readFileSync(path).subarray(0, 4 * MIB))
  const other = await verify(loop.device, '--image', path)
  assert.is(other.code, 1)
  assert.match(other.stderr, 'its sha256 is')
})

test('of any one bit that is changed, none is missed', () => {
  const image = makeNoise(64 * 1024, 5)
  const parts = [
    { number: 1, offset: 1000, bytes: 5000 },
    { number: 2, offset: 5500, bytes: 30_000 },
  ]
  for (let round = 0; round < 2000; round += 1) {
    const at = (round * 7919) % image.length
    const disk = Buffer.from(image)
    disk.writeUInt8(disk.readUInt8(at) ^ (1 << (round % 8)), at)
    const tally = createTally(parts)
    for (let from = 0; from < image.length; from += 10_000)
      tally.compare(image.subarray(from, from + 10_000), disk.subarray(from, from + 10_000), from)
    const areas = tally.finish(image.length)
    assert.equal(
      areas.flatMap(({ differing, firstDifference }) =>
        differing > 0 ? [[differing, firstDifference]] : [],
      ),
      [[1, at]],
    )
    assert.is(
      areas.reduce((sum, { bytes }) => sum + bytes, 0),
      image.length,
    )
  }
})

test.run()
