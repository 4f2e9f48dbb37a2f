import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sumUp } from '#engine/flash/copier.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'

const test = suite('checksums of what is written')

test('equal bytes have equal sums; one bit more, less or elsewhere has another', () => {
  for (const bytes of [Buffer.alloc(4096), makeNoise(70_000, 3), makeNoise(1 << 20, 4)]) {
    const sum = sumUp(bytes)
    assert.is(sumUp(Buffer.from(bytes)), sum)
    for (const at of [0, 1, 4095, bytes.length >> 1, bytes.length - 1]) {
      const changed = Buffer.from(bytes)
      changed[at] = (bytes[at] ?? 0) ^ 0x10
      assert.is.not(sumUp(changed), sum, `byte ${at} of ${bytes.length}`)
    }
    assert.is.not(sumUp(bytes.subarray(0, -1)), sum)
    assert.is.not(sumUp(Buffer.concat([bytes, Buffer.alloc(512)])), sum)
  }
  const [one, two] = [makeNoise(4096, 1), makeNoise(4096, 2)]
  assert.is.not(sumUp(Buffer.concat([one, two])), sumUp(Buffer.concat([two, one])))
})
test.run()
