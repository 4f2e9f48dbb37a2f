/** Thin disks: what is hashed and counted of their zeros, and the digest that is left out where there are too many. */
import { createHash } from 'node:crypto'
import { mkdtempDisposable, open, readFile, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { renderVolume } from '#build/exfat/volume.ts'
import { openCapture, runCapture, toFile } from '#engine/capture/capturer.ts'
import { run } from '#test/support/capture/lived/volume.ts'
import { PART_OFFSET } from '#test/support/disk/capture-disks.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('captured thin disks')
const MIB = 1 << 20
const GIB = 2 ** 30

/** One swap partition over all of it: only its header and what lies around it are used. */
async function makeThin(path: string, bytes: number) {
  await writeFile(path, '')
  await using file = await open(path, 'r+')
  await file.truncate(bytes)
  await run({
    input: `label: gpt\nstart=2048, size=${bytes / 512 - 4096}, type=S\n`,
  })`sfdisk --quiet ${path}`
  const header = Buffer.alloc(4096)
  header.write('SWAPSPACE2', 4086, 'latin1')
  header.writeUInt32LE(1, 1024)
  header.writeUInt32LE((bytes - 2 * MIB) / 4096 - 1, 1028)
  await file.write(header, 0, header.length, MIB)
  // Boot code, so that not all of it is zeros.
  await file.write(makeNoise(400, 3), 0, 400, 0)
}

async function captureThin(bytes: number, folder: string) {
  const path = join(folder, `disk-${bytes}`)
  await makeThin(path, bytes)
  await using source = await createLoop({ backing: path })
  const { signal } = new AbortController()
  const env = process.env
  const order = { source: source.device, generalize: false }
  await using opened = await openCapture({ env, isRoot: true }, order, signal)
  const output = join(folder, `${bytes}.img.zst`)
  const seen: { readonly bytes_written: number; readonly total_bytes: number | null }[] = []
  const captured = await runCapture(opened, toFile(output, env), {
    level: 3,
    signal,
    onProgress: (progress) => void seen.push(progress),
  })
  return { path, output, captured, seen, used: opened.ranges.totalBytes }
}

test('zeros that are hashed count as progress', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-thin-'))
  const bytes = 2 * GIB
  const { path, captured, seen, used } = await captureThin(bytes, folder.path)
  assert.ok(used < 4 * MIB, String(used))
  assert.equal([...new Set(seen.map((one) => one.total_bytes))], [bytes])
  assert.ok(seen.every((one) => one.bytes_written <= bytes))
  const digest = (await run`sha256sum ${path}`).stdout.slice(0, 64)
  assert.is(captured.imageSha256, digest)
})

test('above 256 GiB of free space the digest is not computed, and the image is verified by its frames', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-thin-'))
  const bytes = 257 * GIB
  const { output, captured, seen, used } = await captureThin(bytes, folder.path)
  assert.is(captured.imageSha256, null)
  assert.equal([...new Set(seen.map((one) => one.total_bytes))], [used])
  const stored = await readFile(output)
  assert.is(captured.sha256, createHash('sha256').update(stored).digest('hex'))
  const index = stored.subarray(stored.indexOf('flashidx'))
  assert.ok(index.subarray(32, 64).equals(Buffer.alloc(32)))
  const inspected = await runFlasher(['inspect', 'image', output, '--json'])
  const { frames } = JSON.parse(inspected.stdout).image
  assert.equal(
    [frames.image_sha256, frames.index_sha256, frames.count],
    [undefined, captured.indexSha256, captured.frames],
  )
  await using target = await createLoop({ sizeBytes: bytes })
  const argv = ['flash', '--image', output, '--target', target.device, '--yes', '--json']
  const flashed = await runFlasher([...argv, '--index-sha256', captured.indexSha256, '--delta'])
  assert.is(flashed.code, 0, flashed.stderr)
  const { stdout: cut } = await run`head -c 440 ${target.device} | base64 -w0`
  assert.is(cut, Buffer.concat([makeNoise(400, 3), Buffer.alloc(40)]).toString('base64'))
})

const runTool = $({ quiet: true })
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
  await runTool({ input: lines })`sfdisk --quiet ${path}`
}

async function capture(path: string, folder: string) {
  const output = join(folder, 'a.img.zst')
  await using source = await createLoop({ backing: path })
  const argv = ['capture', '--source', source.device, '--output', output, '--json']
  const { code, stdout, stderr } = await runFlasher(argv)
  assert.is(code, 0, stderr)
  await runTool`zstd -qdf ${output} -o ${join(folder, 'raw')}`
  const [part] = JSON.parse(stdout).parts
  assert.equal([part.type, part.whole], ['exfat', null])
  const whole = await readFile(join(folder, 'raw'))
  return { used: Number(part.used_bytes), volume: whole.subarray(PART_OFFSET) }
}

/** The file system of a partition, as its own tool sees it. */
async function check(folder: string, volume: Buffer) {
  const file = join(folder, 'checked')
  await writeFile(file, volume.subarray(0, PART_BYTES))
  return (await runTool`fsck.exfat -n ${file}`).stdout
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
  await runTool`mkfs.exfat -L DATA ${file}`
  await runTool`dd if=${file} of=${path} bs=1M seek=${PART_OFFSET / MIB} conv=notrunc status=none`
  const { used, volume } = await capture(path, folder.path)
  assert.ok(used < 16 * MIB, String(used))
  assert.match(await check(folder.path, volume), 'clean. directories 1, files 0')
  assert.match((await runTool`exfatlabel ${join(folder.path, 'checked')}`).stdout, 'DATA')
  const half = volume.subarray(PART_BYTES / 2, PART_BYTES)
  assert.ok(half.equals(Buffer.alloc(half.length)))
})

test.run()
