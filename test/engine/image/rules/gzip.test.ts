import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { measureGzip } from '#engine/image/rules/gzip.ts'
import {
  damaged,
  followSteps,
  fromFile,
  makeContent,
  makeTrailer,
  pipeThrough,
} from '#test/support/disk/compressed.ts'

const test = suite('gzip')

const CONTENT = makeContent(100_000)
const gzip = (content: Buffer, ...flags: readonly string[]) =>
  pipeThrough(['gzip', '-c', ...flags], content)

const measure = (bytes: Buffer) => {
  const { step } = followSteps(measureGzip(bytes.subarray(0, 512), bytes.length), bytes)
  return step.kind === 'known' ? step.virtual : step
}
const wordsOf = (bytes: Buffer) => {
  const found = measure(bytes)
  return found.kind === 'refused' ? found.refusal : found
}

test('the trailer is a lower bound, never the size', () => {
  const bound = { kind: 'at-least', bytes: CONTENT.length }
  assert.equal(measure(gzip(CONTENT)), bound)
  assert.equal(measure(gzip(CONTENT, '-9')), bound)
  assert.equal(measure(fromFile(['gzip', '-c', '-1', '{}'], CONTENT)), bound)
  // Only the last of several members is counted: that is less than all of them, but not wrong.
  assert.equal(measure(Buffer.concat([gzip(CONTENT), gzip(Buffer.from('end'))])), {
    kind: 'at-least',
    bytes: 3,
  })
})

test('a trailer of nothing, or of 4 GiB that wrapped to it, says nothing', () => {
  assert.equal(measure(gzip(Buffer.alloc(0))), { kind: 'unknown' })
  assert.equal(measure(Buffer.concat([gzip(CONTENT), Buffer.alloc(512)])), { kind: 'unknown' })
})

test('metadata behind the data is passed by, where its sizes lead to it', () => {
  const metadata = Buffer.from('\0\0\0\0\0\0\0\0{"metadata_version": "1.1"}\n')
  const pieces = [makeTrailer(metadata), makeTrailer(Buffer.from('untrusted comment: x\n'))]
  const file = Buffer.concat([gzip(CONTENT), ...pieces])
  assert.equal(measure(file), { kind: 'at-least', bytes: CONTENT.length })
  // A size that leads elsewhere is not believed.
  const wrong = Buffer.from(file)
  wrong[wrong.length - 1] = (wrong.at(-1) ?? 0) + 1
  assert.equal(measure(wrong), { kind: 'unknown' })
})

test('what cannot be gzip is refused', () => {
  const file = gzip(CONTENT)
  const end = 'its end is not valid gzip: it is cut off, or other data follows'
  const header = 'its gzip header asks for something that is not known'
  assert.is(wordsOf(file.subarray(0, 19)), end)
  assert.is(wordsOf(file.subarray(0, 5)), end)
  // No deflate stream of this length can hold so much.
  assert.is(wordsOf(Buffer.concat([file.subarray(0, 1000), Buffer.from('ffffffff', 'hex')])), end)
  assert.is(wordsOf(Buffer.alloc(50, 'x')), 'no gzip data in it')
  for (const [at, byte] of [
    [2, 7],
    [3, 0x20],
    [3, 0x80],
  ] as const) {
    const wrong = Buffer.from(file)
    wrong[at] = byte
    assert.is(wordsOf(wrong), header)
  }
})

test('fuzz: any bytes and any damage end in an answer', () => {
  fc.assert(
    fc.property(damaged(gzip(CONTENT)), (file) => {
      measure(file)
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
      measure(Buffer.from(bytes))
      const file = Buffer.concat([Buffer.from('1f8b08', 'hex'), bytes])
      const found = measure(file)
      if (found.kind === 'at-least') assert.ok(found.bytes <= file.length * 1032)
    }),
  )
})

test.run()
