/** An image in frames as blocks: data and zeros alike, in order. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFrames } from '#engine/image/frame/frame-blocks.ts'
import { createFiller } from '#engine/image/filler.ts'
import { readFrameMap } from '#engine/image/frame-maps.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
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
test.run()
