/** A capture that may not be, or is broken off: refused with the reason, and nothing is left of it. */
import { constants } from 'node:fs'
import { mkdtempDisposable, open, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createDiskReader } from '#engine/capture/part-reading.ts'
import { listRanges } from '#engine/capture/rules/range-list.ts'
import { createSlot, openDevice } from '#engine/disk/device.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { makeCaptureDisk } from '#test/support/disk/capture-disks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'
import { listLoopsOn } from '#test/support/disk/growing-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { isFree, untilFree } from '#test/support/disk/writer.ts'
import { openCuttingProxy } from '#test/support/http/cutting-proxy.ts'
import { startRegistry } from '#test/support/http/registry.ts'
import { runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('refused and broken captures')
const run = $({ quiet: true })
const MIB = 1 << 20

const scratch = () => mkdtempDisposable(join(tmpdir(), 'flasher-refused-'))
const argvOf = (source: string, output: string) => [
  'capture',
  '--source',
  source,
  '--output',
  output,
]

test('a disk that is in use, and what is no disk, is refused', async () => {
  await using folder = await scratch()
  const output = join(folder.path, 'a.img.zst')
  await using loop = await createLoop({ megabytes: 8 })
  const { device } = loop
  const expectRefused = async (source: string, code: number, words: RegExp) => {
    const ended = await runFlasher(argvOf(source, output))
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
  const taken = await runFlasher(argvOf(loop.device, output))
  assert.is(taken.code, 1)
  assert.match(taken.stderr, 'exists already')
  assert.is(await readFile(output, 'utf8'), 'mine')
  assert.is((await runFlasher(argvOf(loop.device, join(folder.path, 'a.img')))).code, 2)
  const lost = await runFlasher(argvOf(loop.device, join(folder.path, 'none/a.img.zst')))
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
      const ended = await runFlasher(argvOf(device, join(folder.path, 'a.img.zst')))
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
    const started = startFlasher([...argvOf(source.device, output), '--level', '19'])
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
  const started = startFlasher(argvOf(device, output))
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

const SECTOR = 512
/** Within the first 4096 bytes behind one range, and 64 KiB before the next one. */
const BAD = 2 * MIB + 3 * SECTOR

const FAIL = `if [ "$4" -le ${BAD} ] && [ $(($4 + $3)) -gt ${BAD} ]; then echo EIO bad >&2; exit 1; fi`

async function fill(ranges: readonly Range[]) {
  await using disk = await createFaultyDisk({ nbdkit: scripted(4, { pread: FAIL }) })
  const facts = { node: disk.device, sizeBytes: 4 * MIB, sectorBytes: SECTOR }
  await using writing = await openDevice(facts)
  const content = createSlot(4 * MIB).fill(0x55)
  await writing.write(content, 0)
  const reader = createDiskReader(writing, listRanges(ranges), [])
  const into = createSlot(4 * MIB)
  await reader.fill(into)
  return into
}

test('one between two ranges that are read in one go ends nothing', async () => {
  const ranges = [
    { offset: MIB, bytes: MIB + SECTOR },
    { offset: BAD + 64 * 1024, bytes: MIB },
  ]
  const into = await fill(ranges)
  for (const { offset, bytes } of ranges) {
    assert.ok(into.subarray(offset, offset + bytes).every((byte) => byte === 0x55))
  }
  assert.is(into[BAD], 0)
})

test('one that is wanted is named', async () => {
  const fault = await fill([{ offset: MIB, bytes: 2 * MIB }]).then(
    () => null,
    (thrown: unknown) => thrown,
  )
  assert.match(String(fault), `read error at byte ${BAD} (EIO)`)
})

/** A disk that hardly gets smaller. */
async function makeSource() {
  const loop = await createLoop({ megabytes: 24 })
  await writeFile(loop.backing, makeNoise(24 * MIB, 9))
  return loop
}

test('a disk is stored under a new tag, verified, and flashed from there', async () => {
  await using registry = await startRegistry()
  await using source = await makeSource()
  const output = `oras://${registry.host}/lab/web:v1`
  const argv = ['capture', '--source', source.device, '--output', output]
  const looked = await runFlasher([...argv, '--dry-run'])
  assert.is(looked.code, 0, looked.stderr)
  const catalog = await fetch(`http://${registry.host}/v2/_catalog`)
  assert.equal(await catalog.json(), { repositories: [] })
  const { code, stdout, stderr } = await runFlasher([...argv, '--json'])
  assert.is(code, 0, stderr)
  const { captured } = JSON.parse(stdout)
  assert.match(captured.pinned, /^oras:.*@sha256:[0-9a-f]{64}$/)
  const raw =
    await run`skopeo inspect --raw --tls-verify=false ${`docker://${registry.host}/lab/web:v1`}`
  const { layers } = JSON.parse(raw.stdout)
  assert.equal(layers[0].digest, `sha256:${captured.sha256}`)
  assert.equal(layers[0].annotations['vnd.flasher.index_sha256'], captured.index_sha256)
  await using target = await createLoop({ megabytes: 24 })
  const order = ['flash', '--image', captured.pinned, '--target', target.device, '--yes']
  const flashed = await runFlasher([...order, '--format', 'img.zst'])
  assert.is(flashed.code, 0, flashed.stderr)
  await run`cmp ${source.device} ${target.device}`
  // The disk is not read for a name that is taken.
  const again = await runFlasher(argv)
  assert.is(again.code, 1)
  assert.match(again.stderr, /lab\/web:v1 exists already/)
})

test('where the registry forgets what was cut, the disk is read again, and not for ever', async () => {
  await using registry = await startRegistry()
  await using source = await makeSource()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-registry-'))
  for (const [cuts, tag] of [
    [2, 'two'],
    [100, 'many'],
  ] as const) {
    await using proxy = await openCuttingProxy(`http://${registry.host}`, 3 * MIB, cuts)
    const host = proxy.origin.slice('http://'.length)
    const output = `oras://${host}/lab/web:${tag}`
    const argv = ['capture', '--source', source.device, '--output', output, '--json']
    const { code, stdout, stderr } = await runFlasher(argv)
    if (tag === 'many') {
      assert.is(code, 1)
      assert.match(stderr, /the registry lost the upload 3 times/)
      continue
    }
    assert.is(code, 0, stderr)
    assert.match(stderr, /Reading the disk again/)
    const { captured } = JSON.parse(stdout)
    const blob = await fetch(`http://${registry.host}/v2/lab/web/blobs/sha256:${captured.sha256}`)
    const file = join(folder.path, 'web.img.zst')
    await writeFile(file, Buffer.from(await blob.arrayBuffer()))
    await run`zstd -qdf ${file} -o ${join(folder.path, 'raw')}`
    await run`cmp ${join(folder.path, 'raw')} ${source.backing}`
  }
})

test.run()
