/** Only what differs is fetched and written: the result is the same as that of a whole flash. */
import { mkdtempDisposable, open, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk } from '#test/support/disk/faulty-disk.ts'
import { createLoop, type Loop } from '#test/support/disk/loop.ts'
import { packBuffer, type PackedImage } from '#test/support/disk/packed-image.ts'
import {
  assertSame,
  flash as flashOf,
  makeStale,
  readDisk,
  untilFree,
} from '#test/support/disk/writer.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { runFlasher, startFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('delta')
const MIB = 1 << 20
const FRAME = 4 * MIB
const sources = createSources({ env: {} })
/** Frames 0 to 2, zeros in 3 and 4, data in 5 to 9. */
const IMAGE = Buffer.concat([
  makeDiskImage(12 * MIB),
  Buffer.alloc(8 * MIB),
  makeNoise(20 * MIB, 7),
])
const PACKED = await packBuffer(IMAGE)

async function serve({ file }: PackedImage) {
  const sent = { bytes: 0 }
  const server = await startHostileServer((request, response) => {
    const [, from, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []
    if (request.method === 'GET') sent.bytes += Number(last ?? file.length) - Number(from ?? 0)
    sendFile(file, request, response)
  })
  return {
    url: `${server.origin}/a.img.zst`,
    sent,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

type More = Omit<Partial<Parameters<typeof flashOf>[0]>, 'source' | 'device'>

async function deltaTo(loop: Loop, packed: PackedImage, more: More = {}) {
  await using server = await serve(packed)
  await using source = await sources.open(server.url)
  const events = await flashOf({ source, device: loop.device, delta: true, ...more })
  return { ...summarize(events), fetched: server.sent.bytes }
}

/** What became of the comparison, and how much was there already. */
function summarize(events: readonly FlashEvent[]) {
  const writes = events.flatMap((one) =>
    one.event === 'writing' && one.phase === 'write' ? [one] : [],
  )
  assert.is(writes.at(-1)?.delta, writes[0]?.delta)
  return {
    delta: writes[0]?.delta,
    kept: writes.at(-1)?.bytes_kept,
    written: writes.at(-1)?.bytes_written,
  }
}

async function putImage(loop: Loop, content: Buffer) {
  const file = await open(loop.device, 'r+')
  await file.write(content, 0, content.length, 0)
  await file.sync()
  await file.close()
}

test('an unchanged disk: nothing but the index is fetched, frames of data are kept', async () => {
  await using loop = await createLoop({ megabytes: 48 })
  await putImage(loop, IMAGE)
  const found = await deltaTo(loop, PACKED)
  assert.is(found.delta, 'compared')
  // Frames 1, 2 and 5 to 9; frame 0 is read from the disk and written again.
  assert.is(found.kept, 7 * FRAME)
  assert.is(found.written, IMAGE.length)
  assert.ok(found.fetched < 200_000, `${found.fetched} bytes fetched`)
  assertSame((await readDisk(loop.device)).subarray(0, IMAGE.length), IMAGE)
})

test('some frames changed: these are fetched and written, and the disk is what it should be', async () => {
  for (const verify of ['data', 'none', 'all'] as const) {
    await using loop = await createLoop({ megabytes: 48 })
    const before = Buffer.from(IMAGE)
    // Frame 0, zeros in 3, and one byte each of 6 and 9.
    before.fill(1, 3 * MIB, 3 * MIB + 10)
    before.fill(2, 3 * FRAME, 3 * FRAME + 10)
    before.fill(3, 6 * FRAME, 6 * FRAME + 1)
    before.fill(4, 10 * FRAME - 1)
    await putImage(loop, before)
    const found = await deltaTo(loop, PACKED, { verify })
    assert.equal([found.delta, found.kept], ['compared', 5 * FRAME])
    assert.ok(found.fetched < 3 * FRAME + 300_000)
    assertSame((await readDisk(loop.device)).subarray(0, IMAGE.length), IMAGE)
  }
})

test('a disk that is as large as the image, and one whose zeros must be written', async () => {
  for (const change of [{}, { zeros: 'write' }] as const) {
    await using loop = await createLoop({ megabytes: 40 })
    await putImage(loop, IMAGE)
    const found = await deltaTo(loop, PACKED, { change: (plan) => ({ ...plan, ...change }) })
    // The last frame reaches into the disk's last MiB, which is written last.
    assert.ok((found.kept ?? 0) >= 6 * FRAME)
    assertSame(await readDisk(loop.device), IMAGE)
  }
})

test('a disk that holds something else is not read to its end, and said so', async () => {
  await using loop = await createLoop({ megabytes: 48 })
  await makeStale(loop.device)
  const found = await deltaTo(loop, PACKED)
  assert.equal([found.delta, found.kept], ['mostly-different', 0])
  assertSame((await readDisk(loop.device)).subarray(0, IMAGE.length), IMAGE)
})

test('without an index, or without trust in it, the whole image is written, and said so', async () => {
  await using loop = await createLoop({ megabytes: 48 })
  await putImage(loop, IMAGE)
  const { sha256, indexSha256 } = PACKED
  assert.is((await deltaTo(loop, PACKED, { sha256 })).delta, 'untrusted')
  const trusted = await deltaTo(loop, PACKED, { sha256, indexSha256 })
  assert.equal([trusted.delta, trusted.kept], ['compared', 7 * FRAME])
  const plain = { ...PACKED, file: PACKED.file.subarray(0, PACKED.file.indexOf('flashidx') - 8) }
  const found = await deltaTo(loop, plain)
  assert.equal([found.delta, found.kept], ['no-index', undefined])
  assertSame((await readDisk(loop.device)).subarray(0, IMAGE.length), IMAGE)
})

test('an image that begins with zeros onto a disk that holds something else: known at the end', async () => {
  const zeros = Buffer.concat([Buffer.alloc(2 * FRAME), makeNoise(3 * FRAME, 8)])
  await using loop = await createLoop({ megabytes: 32 })
  await makeStale(loop.device)
  await using server = await serve(await packBuffer(zeros))
  await using source = await sources.open(server.url)
  const events = await flashOf({ source, device: loop.device, delta: true })
  const writes = events.flatMap((one) => (one.event === 'writing' ? [one] : []))
  const last = writes.findLast(({ phase }) => phase === 'write')
  assert.equal([last?.delta, last?.bytes_kept], ['mostly-different', 0])
})

test('the document and the last line of the command say what became of it', async () => {
  await using loop = await createLoop({ megabytes: 48 })
  await using server = await serve(PACKED)
  const argv = ['flash', '--image', server.url, '--target', loop.device, '--delta', '--yes']
  const first = await runFlasher(argv)
  assert.match(first.stdout, /The whole image was written, because the disk differed too much\./)
  const second = await runFlasher([...argv, '--json'])
  assert.match(second.stdout, /"delta": "compared"/)
  const plain = await runFlasher([...argv, '--json', '--sha256', PACKED.sha256])
  assert.match(plain.stdout, /"delta": "untrusted"/)
})

/** Two versions of a system that share most of their frames, and zeros between them. */
const FIRST = Buffer.concat([makeDiskImage(8 * MIB), Buffer.alloc(4 * MIB), makeNoise(12 * MIB, 5)])
const SECOND = Buffer.concat([
  makeDiskImage(4 * MIB, { seed: 8 }),
  FIRST.subarray(4 * MIB, 20 * MIB),
  makeNoise(4 * MIB, 9),
])
const SLOW_DISK = [
  '--filter=delay',
  'memory',
  '24M',
  'wdelay=12ms',
  'rdelay=8ms',
  'delay-trim=20ms',
]

type Left = 'blank' | 'first' | 'second' | 'half'

function judge(found: Buffer): Left {
  if (found.equals(FIRST)) return 'first'
  if (found.equals(SECOND)) return 'second'
  return found.subarray(0, 4096).every((byte) => byte === 0) ? 'blank' : 'half'
}

test(`SIGKILL at ${KILLS} moments; then a whole flash`, async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-delta-kills-'))
  const paths = {
    first: join(folder.path, 'first.img.zst'),
    second: join(folder.path, 'second.img.zst'),
  }
  await writeFile(paths.first, (await packBuffer(FIRST)).file)
  await writeFile(paths.second, (await packBuffer(SECOND)).file)
  await using disk = await createFaultyDisk({ nbdkit: SLOW_DISK })
  const { device } = disk

  function start(wanted: 'first' | 'second') {
    const target = ['--image', paths[wanted], '--target', device, '--delta', '--yes']
    return startFlasher(['flash', ...target, '--progress', 'ndjson'])
  }
  async function flashWhole(wanted: 'first' | 'second') {
    const flash = start(wanted)
    await flash.saw('"started"')
    const begun = performance.now()
    assert.is((await flash.ended).code, 0)
    assert.is(judge(await readDisk(device)), wanted)
    return performance.now() - begun
  }

  await flashWhole('first')
  const lasts = await flashWhole('second')
  const random = createSeededRandom(31)
  let before: Left = 'second'
  for (let n = 0; n < KILLS; n += 1) {
    const wanted = n % 2 === 0 ? 'first' : 'second'
    const flash = start(wanted)
    await flash.saw('"started"')
    // Every other time among the last steps, where the ends are written.
    const share = n % 4 < 2 ? random() : 0.6 + 0.5 * random()
    await sleep(share * lasts)
    flash.child.kill('SIGKILL')
    const { code } = await flash.ended
    await untilFree(device)
    const left = judge(await readDisk(device))
    const isRight = left === 'blank' || left === wanted || (left === before && code === 137)
    assert.ok(isRight, `${left} (${code}) when killed after ${share} of the time`)
    before = left
  }
  await flashWhole('second')
})

test.run()
