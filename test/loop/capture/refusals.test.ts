/** A capture that may not be, or is broken off: refused with the reason, and nothing is left of it. */
import { mkdtempDisposable, open, readdir, readFile, writeFile } from 'node:fs/promises'
import { constants } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { makeCaptureDisk } from '#test/support/disk/capture-disks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { listLoopsOn } from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'
import { isFree, untilFree } from '#test/support/disk/writer.ts'

const test = suite('refused and broken captures')
const run = $({ quiet: true })
const MIB = 1 << 20

const scratch = () => mkdtempDisposable(join(tmpdir(), 'flasher-refused-'))
const argv = (source: string, output: string) => ['capture', '--source', source, '--output', output]

test('a disk that is in use, and what is no disk, is refused', async () => {
  await using folder = await scratch()
  const output = join(folder.path, 'a.img.zst')
  await using loop = await createLoop({ megabytes: 8 })
  const { device } = loop
  const expectRefused = async (source: string, code: number, words: RegExp) => {
    const ended = await runFlasher(argv(source, output))
    assert.is(ended.code, code, ended.stderr)
    assert.match(ended.stderr, words)
  }
  await expectRefused(join(folder.path, 'none'), 1, /source does not exist: /)
  await expectRefused(loop.backing, 1, /source is not a block device/)
  {
    await using _ = await open(device, constants.O_RDONLY | constants.O_EXCL)
    await expectRefused(device, 5, /is in use by another program/)
  }
  await run`mkfs.ext4 -q ${device}`
  await using at = await scratch()
  await run`mount ${device} ${at.path}`
  try {
    await expectRefused(device, 1, /source has mounted partitions: /)
  } finally {
    await run`umount ${at.path}`
  }
  await run`mkswap ${device}`
  await run`swapon ${device}`
  await expectRefused(device, 1, /source is in use: .*swap/)
  await run`swapoff ${device}`
  const { stdout: root } = await run`findmnt --noheadings --output SOURCE /`
  if (root.startsWith('/dev/')) await expectRefused(root.trim(), 1, /source /)
  assert.equal(await readdir(folder.path), [])
})

test('a file that is there stays as it is, and its name says what it holds', async () => {
  await using folder = await scratch()
  await using loop = await createLoop({ megabytes: 8 })
  const output = join(folder.path, 'a.img.zst')
  await writeFile(output, 'mine')
  const taken = await runFlasher(argv(loop.device, output))
  assert.is(taken.code, 1)
  assert.match(taken.stderr, 'exists already')
  assert.is(await readFile(output, 'utf8'), 'mine')
  assert.is((await runFlasher(argv(loop.device, join(folder.path, 'a.img')))).code, 2)
  const lost = await runFlasher(argv(loop.device, join(folder.path, 'none/a.img.zst')))
  assert.is(lost.code, 2)
  assert.match(lost.stderr, 'there is no folder')
  assert.equal(await readdir(folder.path), ['a.img.zst'])
})

test('too little room is refused before anything is written, and a full disk leaves nothing', async () => {
  await using folder = await scratch()
  await using used = await makeCaptureDisk('ext4')
  await using known = await createLoop({ backing: used.path })
  await using unknown = await createLoop({ megabytes: 64 })
  await writeFile(unknown.backing, makeNoise(64 * MIB, 4))
  for (const [{ device }, size, words] of [
    [known, '1m', /it cannot fit/],
    [unknown, '8m', /it may not fit[^]*cannot be written/],
    [unknown, '40m', /it may not fit[^]*cannot be written/],
  ] as const) {
    await run`mount -t tmpfs -o size=${size} none ${folder.path}`
    try {
      const ended = await runFlasher(argv(device, join(folder.path, 'a.img.zst')))
      assert.is(ended.code, 1)
      assert.match(ended.stderr, words)
      assert.equal(await readdir(folder.path), [])
    } finally {
      await run`umount ${folder.path}`
    }
  }
})

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} in the middle leaves nothing`, async () => {
    await using folder = await scratch()
    await using source = await createLoop({ megabytes: 512 })
    await run`dd if=/dev/urandom of=${source.backing} bs=1M count=512 conv=notrunc status=none`
    const output = join(folder.path, 'a.img.zst')
    const started = startFlasher([...argv(source.device, output), '--level', '19'])
    await started.saw('[writing]')
    started.child.kill(signal)
    const { code } = await started.ended
    assert.is(code, signal === 'SIGINT' ? 130 : 143)
    assert.equal(await readdir(folder.path), [])
    assert.ok(await isFree(source.device))
  })
}

test('kill -9 leaves no file with the name, no loop device, and the disk free', async () => {
  await using folder = await scratch()
  await using source = await createLoop({ megabytes: 512 })
  const { device } = source
  await run`mkfs.ext4 -q ${device}`
  const output = join(folder.path, 'a.img.zst')
  const started = startFlasher(argv(device, output))
  const looking = (async () => {
    for (let tries = 0; tries < 3000; tries += 1) {
      if ((await listLoopsOn(device)).length > 0) return
    }
  })()
  await Promise.race([looking, started.ended])
  started.child.kill('SIGKILL')
  await started.ended
  await untilFree(device)
  for (let tries = 0; tries < 300 && (await listLoopsOn(device)).length > 0; tries += 1);
  assert.equal(await listLoopsOn(device), [])
  assert.not((await readdir(folder.path)).includes('a.img.zst'))
})
test.run()
