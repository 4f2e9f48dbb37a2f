import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideZeroMethod } from '../../runtime/core/zeros.ts'

const test = suite('decideZeroMethod')

/** isLoop, write_zeroes_max_bytes, discard_max_bytes. */
const rows = [
  ['a loop that can punch holes', true, 4096, 4096, 'discard'],
  ['a loop that can only discard', true, 0, 4096, 'discard'],
  ['a loop on a file system without holes', true, 4096, 0, 'zero-out'],
  ['a loop that can do nothing', true, 0, 0, 'write'],
  ['an NVMe disk with write-zeroes', false, 131072, 4096, 'zero-out'],
  ['a disk whose discard promises nothing', false, 0, 4096, 'write'],
  ['a plain disk', false, 0, 0, 'write'],
] as const
for (const [name, isLoop, writeZeroesMaxBytes, discardMaxBytes, method] of rows)
  test(name, () => {
    assert.is(decideZeroMethod({ isLoop, writeZeroesMaxBytes, discardMaxBytes }), method)
  })

test.run()
