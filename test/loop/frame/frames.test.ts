/** Images in frames onto disks: entered anywhere where they can be trusted, refused where they lie. */
import { createHash } from 'node:crypto'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { seekable } from '#test/support/disk/compressed.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { callZeros, packBuffer } from '#test/support/disk/packed-image.ts'
import { flashRefused } from '#test/support/disk/refused-flash.ts'
import {
  assertSame,
  expectedDisk,
  flash,
  makeStale,
  readDisk,
  type FlashOrder,
} from '#test/support/disk/writer.ts'
import {
  sendFile,
  startHostileServer,
  type FileBehaviour,
} from '#test/support/http/hostile-server.ts'

const test = suite('frames onto disks')
const MIB = 1 << 20
const sources = createSources({ env: {}, retryMs: 1 })
/** Zeros of three frames, and a last frame that ends within a sector. */
const IMAGE = Buffer.concat([
  makeDiskImage(9 * MIB),
  Buffer.alloc(15 * MIB),
  makeNoise(5 * MIB + 300, 4),
])
const PACKED = await packBuffer(IMAGE)

type More = Omit<Partial<FlashOrder>, 'source' | 'device'>

async function flashFrom(location: string, more: More = {}, image = IMAGE) {
  await using loop = await createLoop({ megabytes: 32 })
  const stale = await makeStale(loop.device)
  await using source = await sources.open(location)
  const events = await flash({ source, device: loop.device, ...more })
  assertSame(await readDisk(loop.device), expectedDisk(stale, image))
  return events
}

async function refusedFrom(location: string, more: More = {}) {
  await using source = await sources.open(location)
  return await flashRefused(32, { source, ...more })
}

function writeTemporary(file: Buffer) {
  const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-frames-'))
  const path = join(folder.path, 'a.img.zst')
  writeFileSync(path, file)
  return { path, [Symbol.dispose]: () => folder[Symbol.dispose]() }
}

/** Serves the file, and remembers which parts of it were sent. */
async function serve(file: Buffer, behave: (count: number) => FileBehaviour = () => ({})) {
  const parts: (readonly [from: number, to: number])[] = []
  const server = await startHostileServer((request, response, count) => {
    const [, from, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []
    if (from !== undefined) parts.push([Number(from), Number(last) + 1])
    sendFile(file, request, response, behave(count))
  })
  const url = `${server.origin}/a.img.zst`
  return { url, parts, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

/** Where the frames of zeros lie in the file: the third to the fifth of 4 MiB. */
function zeroFramesOf(file: Buffer): readonly [number, number] {
  const index = file.indexOf('flashidx')
  const sizes = [0, 1, 2, 3, 4, 5].map((frame) => file.readUInt32LE(index + 64 + frame * 40))
  const sum = (count: number) => sizes.slice(0, count).reduce((all, size) => all + size, 0)
  return [sum(3), sum(6)]
}

test('from a file, with and without digests', async () => {
  using file = writeTemporary(PACKED.file)
  await flashFrom(file.path)
  const { sha256, indexSha256 } = PACKED
  await flashFrom(file.path, { sha256 })
  await flashFrom(file.path, { sha256, indexSha256 })
  await flashFrom(file.path, { indexSha256, verify: 'all' })
})

test('from a server: frames of zeros are never fetched', async () => {
  await using server = await serve(PACKED.file)
  await flashFrom(server.url, { sha256: PACKED.sha256, indexSha256: PACKED.indexSha256 })
  const [from, to] = zeroFramesOf(PACKED.file)
  assert.ok(to > from)
  // The index and the tables are read before, with what lies around them.
  const frames = server.parts.filter(([start]) => start > 0 && start < from)
  assert.ok(frames.length > 0)
  assert.ok(server.parts.every(([start, end]) => end <= from || start >= to))
})

test('connections that break go on at their frame; a server without ranges is read whole', async () => {
  await using server = await serve(PACKED.file, (count) =>
    count % 3 === 2 ? { cutAfter: 100_000 } : {},
  )
  await flashFrom(server.url)
  await using plain = await serve(PACKED.file, () => ({ ranges: false }))
  await flashFrom(plain.url, { sha256: PACKED.sha256, indexSha256: PACKED.indexSha256 })
})

test('several sources serve frames; what one sends wrong comes from another', async () => {
  const damaged = Buffer.from(PACKED.file)
  damaged.fill(0x55, 1000, 2_000_000)
  await using good = await serve(PACKED.file)
  await using bad = await serve(damaged)
  await using mirror = await sources.open(bad.url)
  await flashFrom(good.url, { mirrors: [mirror] })
  assert.ok(good.parts.length > 4 && bad.parts.length > 0)
  await using first = await sources.open(good.url)
  await flashFrom(bad.url, { mirrors: [first] })
})

test('another index than the trusted one, or none, is refused before a byte is written', async () => {
  using file = writeTemporary(PACKED.file)
  const indexSha256 = '0'.repeat(64)
  const { fault, isUntouched } = await refusedFrom(file.path, { indexSha256 })
  assert.ok(isUntouched)
  assert.is(fault.code, 'digest-mismatch')
  assert.match(fault.message, 'has another index than the one asked for')
})

test('frames that are not what the index says: a clear refusal, and a disk that does not boot', async () => {
  const { file } = PACKED
  const index = file.indexOf('flashidx')
  const [, zerosEnd] = zeroFramesOf(file)
  const rows: readonly (readonly [string, (bytes: Buffer) => void, RegExp])[] = [
    [
      'a digest',
      (bytes) => bytes.fill(7, index + 64 + 6 * 40 + 8, index + 64 + 7 * 40),
      /match the index/,
    ],
    ['content', (bytes) => bytes.fill(0x55, zerosEnd + 50, zerosEnd + 90), /damaged/],
    ['sizes', (bytes) => bytes.writeBigUInt64LE(2n ** 63n, index + 16), /claims more than/],
    ['overlap', (bytes) => bytes.writeUInt32LE(77, index + 64), /do not fill the file/],
    ['the seek table', (bytes) => swapEntries(bytes), /contradict each other/],
  ]
  for (const [name, change, message] of rows) {
    const changed = Buffer.from(file)
    change(changed)
    using stored = writeTemporary(changed)
    const { fault } = await refusedFrom(stored.path)
    assert.match(fault.message, message, name)
  }
})

/** Moves a byte of stored size from one frame to the next, so that the sum stays the same. */
function swapEntries(bytes: Buffer) {
  const table = bytes.length - 9 - 9 * 8
  bytes.writeUInt32LE(bytes.readUInt32LE(table) - 1, table)
  bytes.writeUInt32LE(bytes.readUInt32LE(table + 8) + 1, table + 8)
}

test('read from start to end, a frame of data that the index calls zeros is refused as well', async () => {
  const lying = callZeros(PACKED.file, 0)
  using stored = writeTemporary(lying)
  const sha256 = createHash('sha256').update(lying).digest('hex')
  const { fault } = await refusedFrom(stored.path, { sha256 })
  assert.is(fault.code, 'image-broken')
  assert.match(fault.message, 'frame 0 does not match the index')
})

test('seek tables of other tools are entered; one that lies is refused', async () => {
  const parts = [0, 1, 2].map((n) => makeNoise(700_000, n + 1))
  const image = Buffer.concat([makeDiskImage(2 * MIB), ...parts])
  const file = seekable([image.subarray(0, 2 * MIB), ...parts])
  using stored = writeTemporary(file)
  await flashFrom(stored.path, {}, image)
  const lying = Buffer.from(file)
  const table = file.length - 9 - 4 * 8
  lying.writeUInt32LE(lying.readUInt32LE(table + 8) - 9, table + 8)
  lying.writeUInt32LE(lying.readUInt32LE(table + 16) + 9, table + 16)
  using other = writeTemporary(lying)
  const { fault } = await refusedFrom(other.path)
  assert.match(fault.message, 'its tables do not say where its frames end')
})

test.run()
