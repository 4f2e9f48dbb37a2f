/** An image in frames that is entered somewhere in the middle: exactly what follows there comes. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFrames } from '../../../../runtime/engine/image/frame/frame-blocks.ts'
import { createFiller } from '../../../../runtime/engine/image/filler.ts'
import { readFrameMap } from '../../../../runtime/engine/image/frame-maps.ts'
import { createSources } from '../../../../runtime/engine/image/sources/sources.ts'
import { makeNoise } from '../../../support/disk/disk-images.ts'
import { packBuffer } from '../../../support/disk/packed-image.ts'

const test = suite('frames entered in the middle')
const MIB = 1 << 20
const FRAME = 4 * MIB
/** Data, two frames of zeros, data, zeros at the end. */
const IMAGE = Buffer.concat([
  makeNoise(FRAME, 1),
  Buffer.alloc(2 * FRAME),
  makeNoise(FRAME + MIB, 2),
  Buffer.alloc(FRAME + 300),
])

test('from any offset, data and zeros alike', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-enter-'))
  const path = join(folder.path, 'a.img.zst')
  await writeFile(path, (await packBuffer(IMAGE)).file)
  await using source = await createSources({ env: {} }).open(path)
  const { readAt } = source
  assert.ok(readAt !== null)
  const place = { ...source, readAt }
  const map = await readFrameMap(place)
  assert.ok(map !== null)
  const offsets = [0, 1, FRAME - 1, FRAME, FRAME + 5, 2 * FRAME + 7, 3 * FRAME, 3 * FRAME + 9]
  for (const from of [...offsets, 4 * FRAME + MIB + 3, IMAGE.length - 1, IMAGE.length]) {
    await using blocks = openFrames({ map, sources: [place], from }, 2)
    const into = Buffer.alloc(IMAGE.length + 1, 0xff)
    const bytes = await createFiller(blocks).fill(into)
    assert.is(bytes, IMAGE.length - from, `from ${from}`)
    assert.ok(into.subarray(0, bytes).equals(IMAGE.subarray(from)), `from ${from}`)
  }
})
test.run()
