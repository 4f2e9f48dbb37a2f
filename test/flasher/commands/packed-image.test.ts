import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderPacked } from '#flasher/commands/pack.ts'

const test = suite('what is said of a packed image')

test('no name moves the cursor, not even one’s own', () => {
  const digest = 'a'.repeat(64)
  const packed = {
    storedBytes: 1,
    imageBytes: 1,
    frames: 1,
    zeroFrames: 0,
    sha256: digest,
    indexSha256: digest,
    imageSha256: digest,
    seconds: 1,
  }
  const text = renderPacked('\u001b[31mred\u202e.img.zst', packed, '')
  assert.match(text, /^\\x1b\[31mred\\u202e\.img\.zst: /)
})

test.run()
