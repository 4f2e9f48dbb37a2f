/** An image in frames as blocks: data and zeros alike, in order. */
import { createHash } from 'node:crypto'
import { appendFile, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createFiller, openRaw } from '#engine/image/stream-blocks.ts'
import { readFrameMap } from '#engine/image/zstd-decoder.ts'
import { openFrames } from '#engine/image/frame/frame-blocks.ts'
import { type FrameReading, readOnce, readTwice } from '#engine/image/frame/frame-writer.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'

const test = suite('frames as blocks')
const MIB = 1 << 20
const FRAME = 4 * MIB
/** Data, two frames of zeros, data, zeros at the end. */
const IMAGE = Buffer.concat([
  makeNoise(FRAME, 1),
  Buffer.alloc(2 * FRAME),
  makeNoise(FRAME + MIB, 2),
  Buffer.alloc(FRAME + 300),
])

test('data and zeros alike, to the last byte', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-frames-'))
  const path = join(folder.path, 'a.img.zst')
  await writeFile(path, (await packBuffer(IMAGE)).file)
  await using source = await createSources({ env: {} }).open(path)
  const { readAt } = source
  assert.ok(readAt !== null)
  const place = { ...source, readAt }
  const map = await readFrameMap(place)
  assert.ok(map !== null)
  await using blocks = openFrames({ map, sources: [place] })
  const into = Buffer.alloc(IMAGE.length + 1, 0xff)
  const bytes = await createFiller(blocks).fill(into)
  assert.is(bytes, IMAGE.length)
  assert.ok(into.subarray(0, bytes).equals(IMAGE))
})

async function openFile(path: string) {
  const source = await openFileSource(path)
  const { readAt } = source
  if (readAt === null) throw new Error('a file can be read anywhere')
  return { ...source, readAt }
}

/** Everything that a reading says of an image, and the bytes of its frames that hold data. */
async function readAll(reading: FrameReading) {
  const into = Buffer.alloc(FRAME)
  const frames: string[] = []
  for (;;) {
    into.fill(0x55)
    const { bytes, isZero } = await reading.next(into)
    if (bytes === 0) break
    const content = createHash('sha256').update(into.subarray(0, bytes)).digest('hex')
    frames.push(isZero ? `${bytes} zeros` : `${bytes} ${content}`)
  }
  return { frames, sha256: reading.digest()?.toString('hex') }
}

const IMAGES: Readonly<Record<string, Buffer>> = {
  empty: Buffer.alloc(0),
  'less than a frame': makeNoise(1000, 1),
  'one frame': makeNoise(FRAME, 2),
  'zeros at its end': Buffer.concat([makeNoise(FRAME + 5, 3), Buffer.alloc(3 * FRAME)]),
  'zeros before a piece': Buffer.concat([Buffer.alloc(2 * FRAME), makeNoise(MIB + 1, 4)]),
  'one byte behind zeros': Buffer.concat([Buffer.alloc(2 * FRAME - 1), Buffer.from([1])]),
}

test('a file that is read twice has the frames of one that is read once', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-readings-'))
  for (const [name, image] of Object.entries(IMAGES)) {
    const path = join(folder.path, 'a.img')
    await writeFile(path, image)
    await using source = await openFile(path)
    await using twice = readTwice(source)
    const found = await readAll(twice)
    assert.equal(found, await readAll(readOnce(createFiller(openRaw(source)))), name)
    assert.is(found.sha256, createHash('sha256').update(image).digest('hex'), name)
    assert.is(twice.bytesRead(), image.length, name)
  }
})

const fillBySevens = (into: Buffer) => Promise.resolve(into.fill(7).length)

test('what is hashed ahead is bounded, and ends with the reading', async () => {
  const zeros = Buffer.alloc(MIB)
  const data = Buffer.alloc(MIB, 7)
  const [zeroFrames, dataFrames] = [40, 80]
  const state = { hashed: 0, isOpen: false }
  async function* stream() {
    state.isOpen = true
    try {
      for (let frame = 0; frame < zeroFrames + dataFrames; frame += 1) {
        for (let piece = 0; piece < FRAME / MIB; piece += 1) {
          state.hashed += MIB
          yield frame < zeroFrames ? zeros : data
        }
      }
    } finally {
      state.isOpen = false
    }
  }
  const source = createMemorySource(Buffer.alloc(0), { name: 'disk.img' })
  async function waitFor(frames: number) {
    while (state.hashed < frames * FRAME) await pause(5)
    // It does not go on.
    await pause(100)
    assert.is(state.hashed, frames * FRAME)
  }
  {
    await using twice = readTwice({ ...source, stream, readAt: fillBySevens })
    // Zeros need not be read again, and do not count.
    await waitFor(zeroFrames + 64)
    const into = Buffer.alloc(FRAME)
    for (let frame = 0; frame < zeroFrames + 1; frame += 1) await twice.next(into)
    await waitFor(zeroFrames + 65)
    assert.ok(state.isOpen)
  }
  assert.not(state.isOpen)
})

test('a file that changes between both times is a Fault', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-readings-'))
  const path = join(folder.path, 'a.img')
  await writeFile(path, makeNoise(8 * FRAME, 5))
  await using source = await openFile(path)
  await using twice = readTwice(source)
  await twice.next(Buffer.alloc(FRAME))
  await appendFile(path, 'more')
  const fault = await faultOf(() => readAll(twice))
  assert.is(fault.code, 'source-broken')
  assert.match(fault.message, 'changed while it was read')
})

test.run()
