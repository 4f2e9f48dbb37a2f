import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openZstd } from '#engine/image/zstd-decoder.ts'
import { createRandom, faultOf } from '#test/support/collect.ts'
import { fromFile, pipeThrough, pzstd, seekable, skippable } from '#test/support/disk/compressed.ts'
import { makeContent, makeNoise } from '#test/support/disk/disk-images.ts'
import { collectBlocks, createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  callZeros,
  changeDigest,
  changeFlags,
  packBuffer,
} from '#test/support/disk/packed-image.ts'

const test = suite('zstd')
const MIB = 1 << 20
const decode = (stored: Buffer, chunkBytes = 50_000) =>
  collectBlocks(openZstd(createMemorySource(stored, { name: 'a.img.zst', chunkBytes })), 1 << 20)
const piped = (content: Buffer) => pipeThrough(['zstd', '-qc1'], content)
const sized = (content: Buffer) => fromFile(['zstd', '-q', '-1', '-c', '{}'], content)

test('frames small and large, with and without their size, come in order', async () => {
  const random = createRandom(5)
  const contents = Array.from({ length: 14 }, (_, n) => {
    const bytes = Math.floor(random() * (n % 5 === 0 ? 6 * MIB : 300_000))
    return n % 3 === 0 ? makeNoise(bytes, n) : makeContent(bytes, n)
  })
  const frames = contents.map((content, n) => (n % 2 === 0 ? piped(content) : sized(content)))
  assert.ok((await decode(Buffer.concat(frames))).equals(Buffer.concat(contents)))
})
test('a small frame that holds very much is not held in memory', async () => {
  const content = Buffer.concat([makeNoise(1000), Buffer.alloc(40 * MIB), makeNoise(1000, 2)])
  for (const encode of [piped, sized]) {
    const stored = Buffer.concat([piped(Buffer.from('before')), encode(content), piped(content)])
    const expected = Buffer.concat([Buffer.from('before'), content, content])
    assert.ok((await decode(stored)).equals(expected))
  }
})
test('pzstd, seekable, empty and skippable frames', async () => {
  const content = makeContent(2_500_000, 9)
  const empty = piped(Buffer.alloc(0))
  const rows: readonly (readonly [Buffer, Buffer])[] = [
    [pzstd(content), content],
    [seekable([content, makeNoise(70_000)], true), Buffer.concat([content, makeNoise(70_000)])],
    [empty, Buffer.alloc(0)],
    [Buffer.concat([empty, skippable(makeNoise(100_000)), piped(content), empty]), content],
  ]
  for (const [stored, expected] of rows) {
    for (const chunkBytes of [1, 4093, 1 << 20]) {
      if (chunkBytes === 1 && stored.length > 200_000) continue
      assert.ok((await decode(stored, chunkBytes)).equals(expected))
    }
  }
})
test('a window that nobody has the memory for is refused', async () => {
  const stored = pipeThrough(['zstd', '-qc', '--long=28'], makeNoise(5000))
  const fault = await faultOf(() => decode(stored))
  assert.is(fault.code, 'image-broken')
  assert.is(
    fault.message,
    'a.img.zst needs a window of 268435456 bytes to decode; at most 134217728 are supported',
  )
  assert.match(fault.hint ?? '', '--long=27')
})
test('a damaged frame that is decoded ahead fails when its turn comes', async () => {
  const good = sized(makeNoise(200_000))
  const bad = Buffer.from(good)
  bad.writeUInt8(bad.readUInt8(100_000) ^ 1, 100_000)
  for (let at = 0; at < 5; at += 1) {
    const frames = Array.from({ length: 5 }, (_, n) => (n === at ? bad : good))
    const parts: number[] = []
    const blocks = openZstd(createMemorySource(Buffer.concat(frames), { name: 'a.img.zst' }))
    const into = Buffer.alloc(1 << 20)
    const fault = await faultOf(async () => {
      for (let piece = await blocks.next(into); piece !== null; piece = await blocks.next(into)) {
        parts.push(piece.bytes)
      }
    })
    assert.is(fault.code, 'image-broken')
    assert.is(
      parts.reduce((sum, bytes) => sum + bytes, 0),
      at * 200_000,
    )
  }
})
test('closed early, nothing goes on', async () => {
  const blocks = openZstd(createMemorySource(pzstd(makeNoise(3 * MIB))))
  assert.ok((await blocks.next(Buffer.alloc(1000))) !== null)
  await blocks[Symbol.asyncDispose]()
  // Some of what was decoded already may be left.
  const into = Buffer.alloc(4 * MIB)
  assert.is((await blocks.next(into))?.kind ?? null, 'data')
  assert.is(await blocks.next(into), null)
})

const FRAME = 4 << 20
/** Noise that does not get smaller, texts, zeros, and a last frame that is not whole. */
const IMAGE = Buffer.concat([
  makeNoise(FRAME, 1),
  makeContent(FRAME, 2),
  Buffer.alloc(FRAME),
  makeContent(300_001, 3),
])
const { file: FILE } = await packBuffer(IMAGE)

const decodeIndexed = (stored: Buffer, chunkBytes = 60_001) =>
  collectBlocks(openZstd(createMemorySource(stored, { name: 'a.img.zst', chunkBytes })), 1 << 20)

async function refusalOf(stored: Buffer, chunkBytes?: number): Promise<string> {
  const fault = await faultOf(() => decodeIndexed(stored, chunkBytes))
  assert.is(fault.code, 'image-broken')
  return fault.message
}

test('what the index says is what comes, however the bytes arrive', async () => {
  for (const chunkBytes of [61, 4093, 1 << 20]) {
    assert.ok((await decodeIndexed(FILE, chunkBytes)).equals(IMAGE), String(chunkBytes))
  }
})

test('a frame of data that the index calls zeros is refused', async () => {
  for (const frame of [0, 1]) {
    for (const chunkBytes of [61, 60_001, 1 << 20]) {
      const message = await refusalOf(callZeros(FILE, frame), chunkBytes)
      assert.match(message, `frame ${frame} does not match the index`)
    }
  }
})

test('so is any other digest, and an index that does not add up', async () => {
  for (const frame of [0, 1, 3]) {
    assert.match(
      await refusalOf(changeDigest(FILE, frame)),
      `frame ${frame} does not match the index`,
    )
  }
  assert.match(await refusalOf(changeFlags(FILE, 1)), 'the entry of frame 1 in its index is wrong')
})

test('an index that is not that of the whole file says nothing', async () => {
  const small = await packBuffer(makeNoise(5000, 7))
  const end = small.file.indexOf('flashidx') - 8
  // The same frame twice, before an index of one.
  const doubled = Buffer.concat([small.file.subarray(0, end), small.file])
  assert.ok((await decodeIndexed(doubled)).length === 10_000, 'its tables do not reach the end')
  // An index in the middle is that of a file which was joined with another one.
  const joined = Buffer.concat([FILE, small.file])
  assert.ok((await decodeIndexed(joined)).length === IMAGE.length + 5000)
})

test('files of other tools have no index to be compared with', async () => {
  const parts = [makeNoise(FRAME, 4), makeContent(FRAME, 5), makeNoise(70_000)]
  for (const hasChecksums of [true, false]) {
    assert.ok((await decodeIndexed(seekable(parts, hasChecksums))).equals(Buffer.concat(parts)))
  }
})

test.run()
