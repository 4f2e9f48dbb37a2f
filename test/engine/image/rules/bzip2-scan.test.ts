import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createBzip2Scan } from '#engine/image/rules/bzip2.ts'
import { makeBytes } from '#test/support/collect.ts'
import { cutAt, pipeThrough } from '#test/support/disk/compressed.ts'
import { makeContent } from '#test/support/disk/disk-images.ts'

const test = suite('bzip2 scan')
const bzip2 = (content: Buffer) => pipeThrough(['bzip2', '-1'], content)
/** Many lengths, so that the streams end at all bits of a byte. */
const STREAMS = [0, 1, 2, 3, 5, 7, 11, 13, 1000, 250_000].map((length) =>
  bzip2(makeContent(length, length)),
)
const WHOLE = Buffer.concat(STREAMS)

function passes(file: Buffer, places: readonly number[] = []): boolean {
  const scan = createBzip2Scan()
  return cutAt(file, places).every((chunk) => scan.push(chunk).ok) && scan.end().ok
}
const places = fc.array(fc.nat(WHOLE.length), { maxLength: 12 })

test('streams pass, one or many, in chunks of any size', () => {
  for (const stream of STREAMS) assert.ok(passes(stream))
  fc.assert(fc.property(places, (at) => passes(WHOLE, at)))
  const lbzip2 = pipeThrough(['lbzip2', '-1', '-n', '2'], makeContent(2_000_000))
  assert.ok(passes(lbzip2, [1, 100_000]))
})
test('padding passes', () => {
  fc.assert(fc.property(places, (at) => passes(Buffer.concat([WHOLE, Buffer.alloc(5000)]), at)))
})
test('anything else behind a stream does not', () => {
  const garbage = fc
    .uint8Array({ minLength: 1, maxLength: 100 })
    .filter((bytes) => bytes.some(Boolean))
  fc.assert(
    fc.property(fc.constantFrom(...STREAMS, WHOLE), garbage, places, (file, bytes, at) => {
      assert.not(passes(Buffer.concat([file, bytes]), at))
    }),
  )
  assert.not(
    passes(Buffer.concat([WHOLE, Buffer.alloc(100_000), makeBytes(1)]), [WHOLE.length + 5]),
  )
})
test('a stream whose header is damaged is seen, where the tools end in peace', () => {
  const [first = WHOLE, second = WHOLE] = STREAMS.slice(-2)
  for (let at = 0; at < 4; at += 1) {
    const broken = Buffer.from(second)
    broken[at] = 0x40
    assert.not(passes(Buffer.concat([first, broken])))
  }
})
test('the mark of an end within data means nothing', () => {
  const [stream = WHOLE] = STREAMS.slice(-1)
  const within = Buffer.from(stream)
  Buffer.from('177245385090deadbeef', 'hex').copy(within, 1000)
  assert.ok(passes(within))
})
test.run()
