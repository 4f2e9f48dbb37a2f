import { createHash } from 'node:crypto'
import { appendFile, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  readOnce,
  readTwice,
  type FrameReading,
} from '../../../runtime/services/frame/frame-readings.ts'
import { openFileSource } from '../../../runtime/services/image/file-source.ts'
import { createFiller } from '../../../runtime/services/image/filler.ts'
import { openRaw } from '../../../runtime/services/image/stream-blocks.ts'
import { faultOf } from '../../support/collect.ts'
import { makeNoise } from '../../support/disk/disk-images.ts'

const test = suite('frame readings')
const MIB = 1 << 20
const FRAME = 4 * MIB

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
  return { frames, sha256: reading.digest().toString('hex') }
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

test('what is hashed ahead is bounded, and ends with the reading', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-readings-'))
  const path = join(folder.path, 'a.img')
  const image = Buffer.concat([Buffer.alloc(40 * FRAME), Buffer.alloc(80 * FRAME, 7)])
  await writeFile(path, image)
  await using source = await openFile(path)
  let hashed = 0
  let isOpen = false
  async function* stream() {
    isOpen = true
    try {
      for await (const chunk of source.stream()) {
        hashed += chunk.length
        yield chunk
      }
    } finally {
      isOpen = false
    }
  }
  async function settle() {
    for (let before = -1; before !== hashed;) {
      before = hashed
      await pause(200)
    }
  }
  {
    await using twice = readTwice({ ...source, stream })
    await settle()
    // Zeros need not be read again, and do not count.
    assert.is(hashed, (40 + 64) * FRAME)
    for (let frame = 0; frame < 41; frame += 1) await twice.next(Buffer.alloc(FRAME))
    await settle()
    assert.is(hashed, (40 + 65) * FRAME)
    assert.ok(isOpen)
  }
  assert.not(isOpen)
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
