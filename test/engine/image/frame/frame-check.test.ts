/** An image in frames that is decoded once: each frame and the whole are what the index says. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { checkFrames } from '#engine/image/frame/frame-check.ts'
import { readFrameMap } from '#engine/image/zstd-decoder.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeContent, makeNoise } from '#test/support/disk/disk-images.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  callZeros,
  changeDigest,
  changeImageDigest,
  packBuffer,
} from '#test/support/disk/packed-image.ts'

const test = suite('frames checked once')
const FRAME = 4 << 20
const IMAGE = Buffer.concat([
  makeNoise(FRAME, 1),
  Buffer.alloc(5 * FRAME),
  makeContent(FRAME, 2),
  Buffer.alloc(FRAME),
  Buffer.alloc(70_000),
])
const { file: FILE } = await packBuffer(IMAGE)

async function check(file: Buffer, signal = new AbortController().signal) {
  const reads: number[] = []
  const readAt = async (into: Buffer, at: number) => {
    reads.push(at)
    return file.copy(into, 0, at)
  }
  const source = { ...createMemorySource(file, { name: 'a.img.zst' }), readAt }
  const map = await readFrameMap(source)
  assert.ok(map !== null)
  const seen: number[] = []
  const onChecked = (bytes: number) => seen.push(bytes)
  await checkFrames({ map, source, signal, onChecked, threads: 2 })
  return seen
}

test('what is right passes, and its progress is reported', async () => {
  const seen = await check(FILE)
  assert.is(seen.length, 9)
  assert.is(seen.at(-1), IMAGE.length)
  assert.equal(
    seen,
    seen.toSorted((a, b) => a - b),
  )
})

test('data that is called zeros, and every other digest that is wrong', async () => {
  for (const lying of [callZeros(FILE, 6), changeDigest(FILE, 6)]) {
    const fault = await faultOf(() => check(lying))
    assert.is(fault.code, 'image-broken')
    assert.match(fault.message, 'frame 6 does not match the index')
  }
  const whole = await faultOf(() => check(changeImageDigest(FILE)))
  assert.match(whole.message, 'it does not match its index')
})

test('an image whose digest was not computed is checked by its frames', async () => {
  const thin = Buffer.from(FILE)
  const at = FILE.indexOf('flashidx') + 32
  await check(Buffer.from(thin.fill(0, at, at + 32)))
})

test('it ends when its signal is aborted', async () => {
  const reason = new Fault('cancelled', 'enough')
  const fault = await faultOf(() => check(FILE, AbortSignal.abort(reason)))
  assert.is(fault, reason)
})

test.run()
