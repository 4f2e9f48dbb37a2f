/** Images in frames read from start to end: each frame is compared with the index at the end. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openZstd } from '#engine/image/zstd-decoder.ts'
import { faultOf } from '#test/support/collect.ts'
import { seekable } from '#test/support/disk/compressed.ts'
import { makeContent, makeNoise } from '#test/support/disk/disk-images.ts'
import { collectBlocks, createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  callZeros,
  changeDigest,
  changeFlags,
  packBuffer,
} from '#test/support/disk/packed-image.ts'

const test = suite('frames compared with their index')
const FRAME = 4 << 20
/** Noise that does not get smaller, texts, zeros, and a last frame that is not whole. */
const IMAGE = Buffer.concat([
  makeNoise(FRAME, 1),
  makeContent(FRAME, 2),
  Buffer.alloc(FRAME),
  makeContent(300_001, 3),
])
const { file: FILE } = await packBuffer(IMAGE)

const decode = (stored: Buffer, chunkBytes = 60_001) =>
  collectBlocks(openZstd(createMemorySource(stored, { name: 'a.img.zst', chunkBytes })), 1 << 20)

async function refusalOf(stored: Buffer, chunkBytes?: number): Promise<string> {
  const fault = await faultOf(() => decode(stored, chunkBytes))
  assert.is(fault.code, 'image-broken')
  return fault.message
}

test('what the index says is what comes, however the bytes arrive', async () => {
  for (const chunkBytes of [61, 4093, 1 << 20]) {
    assert.ok((await decode(FILE, chunkBytes)).equals(IMAGE), String(chunkBytes))
  }
})

test('a frame of data that the index calls zeros is refused', async () => {
  for (const frame of [0, 1]) {
    for (const chunkBytes of [61, 60_001, 1 << 20]) {
      const message = await refusalOf(callZeros(FILE, frame), chunkBytes)
      assert.match(message, `frame ${frame} does not hold what its index says`)
    }
  }
})

test('so is any other digest, and an index that does not add up', async () => {
  for (const frame of [0, 1, 3]) {
    assert.match(await refusalOf(changeDigest(FILE, frame)), `frame ${frame} does not hold`)
  }
  assert.match(await refusalOf(changeFlags(FILE, 1)), 'the entry of frame 1 in its index is wrong')
})

test('an index that is not that of the whole file says nothing', async () => {
  const small = await packBuffer(makeNoise(5000, 7))
  const end = small.file.indexOf('flashidx') - 8
  // The same frame twice, before an index of one.
  const doubled = Buffer.concat([small.file.subarray(0, end), small.file])
  assert.ok((await decode(doubled)).length === 10_000, 'its tables do not reach the end')
  // An index in the middle is that of a file which was joined with another one.
  const joined = Buffer.concat([FILE, small.file])
  assert.ok((await decode(joined)).length === IMAGE.length + 5000)
})

test('files of other tools have no index to be compared with', async () => {
  const parts = [makeNoise(FRAME, 4), makeContent(FRAME, 5), makeNoise(70_000)]
  for (const hasChecksums of [true, false]) {
    assert.ok((await decode(seekable(parts, hasChecksums))).equals(Buffer.concat(parts)))
  }
})

test.run()
