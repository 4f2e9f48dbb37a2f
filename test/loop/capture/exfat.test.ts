/** exFAT, which not every kernel can mount: its used clusters are in the image, and free ones are zeros. */
import { mkdtempDisposable, open, readFile, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { renderVolume } from '#build/exfat/volume.ts'
import { PART_OFFSET } from '#test/support/disk/capture-disks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('captured exFAT')
const run = $({ quiet: true })
const MIB = 1 << 20
const PART_BYTES = 96 * MIB
const FILES = [
  { name: 'small.txt', content: Buffer.from('a small file\n') },
  { name: 'large.bin', content: makeNoise(9 * MIB + 77, 5) },
]

type Pieces = readonly { readonly offset: number; readonly bytes: Buffer }[]

async function put(path: string, pieces: Pieces) {
  await using file = await open(path, 'r+')
  for (const { offset, bytes } of pieces) await file.write(bytes, 0, bytes.length, offset)
}

/** A partition in a GPT. */
async function makeDisk(path: string) {
  await writeFile(path, '')
  await truncate(path, PART_OFFSET + PART_BYTES + 4 * MIB)
  const lines = `label: gpt\nstart=${PART_OFFSET / 512}, size=${PART_BYTES / 512}\n`
  await run({ input: lines })`sfdisk --quiet ${path}`
}

async function capture(path: string, folder: string) {
  const output = join(folder, 'a.img.zst')
  await using source = await createLoop({ backing: path })
  const argv = ['capture', '--source', source.device, '--output', output, '--json']
  const { code, stdout, stderr } = await runFlasher(argv)
  assert.is(code, 0, stderr)
  await run`zstd -qdf ${output} -o ${join(folder, 'raw')}`
  const [part] = JSON.parse(stdout).parts
  assert.equal([part.type, part.whole], ['exfat', null])
  const whole = await readFile(join(folder, 'raw'))
  return { used: Number(part.used_bytes), volume: whole.subarray(PART_OFFSET) }
}

/** The file system of a partition, as its own tool sees it. */
async function check(folder: string, volume: Buffer) {
  const file = join(folder, 'checked')
  await writeFile(file, volume.subarray(0, PART_BYTES))
  return (await run`fsck.exfat -n ${file}`).stdout
}

test('files are the same, and what was deleted does not come back', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-exfat-'))
  const path = join(folder.path, 'disk')
  await makeDisk(path)
  const volume = renderVolume({
    sectors: PART_BYTES / 512,
    label: 'IMAGES',
    serial: 0x464c4153,
    time: new Date('2026-03-04T05:06:08Z'),
    files: FILES,
  })
  const end = Math.max(...volume.map(({ offset, bytes }) => offset + bytes.length))
  const free = Math.ceil(end / MIB) * MIB
  await put(path, [
    ...volume.map(({ offset, bytes }) => ({ offset: PART_OFFSET + offset, bytes })),
    { offset: PART_OFFSET + free, bytes: makeNoise(20 * MIB, 9) },
  ])
  const { used, volume: captured } = await capture(path, folder.path)
  for (const { offset, bytes } of volume) {
    assert.ok(captured.subarray(offset, offset + bytes.length).equals(bytes), String(offset))
  }
  assert.ok(captured.subarray(free, PART_BYTES).equals(Buffer.alloc(PART_BYTES - free)))
  assert.ok(used > 9 * MIB && used <= free, String(used))
  assert.match(await check(folder.path, captured), 'clean. directories 1, files 2')
})

test('as mkfs.exfat makes it: tables and folders, and nothing of what lay there before', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-exfat-'))
  const [path, file] = [join(folder.path, 'disk'), join(folder.path, 'fs')]
  await makeDisk(path)
  await writeFile(file, makeNoise(PART_BYTES, 9))
  await run`mkfs.exfat -L DATA ${file}`
  await run`dd if=${file} of=${path} bs=1M seek=${PART_OFFSET / MIB} conv=notrunc status=none`
  const { used, volume } = await capture(path, folder.path)
  assert.ok(used < 16 * MIB, String(used))
  assert.match(await check(folder.path, volume), 'clean. directories 1, files 0')
  assert.match((await run`exfatlabel ${join(folder.path, 'checked')}`).stdout, 'DATA')
  const half = volume.subarray(PART_BYTES / 2, PART_BYTES)
  assert.ok(half.equals(Buffer.alloc(half.length)))
})

test.run()
