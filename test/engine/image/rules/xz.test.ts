import { crc32 } from 'node:zlib'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  measureXz,
  MAX_INDEX_BYTES,
  parseXzFooter,
  parseXzHeader,
  parseXzIndex,
} from '#engine/image/rules/xz.ts'
import { damaged, followSteps, makeContent, pipeThrough } from '#test/support/disk/compressed.ts'

const test = suite('xz')

const CONTENT = makeContent(100_000)
const xz = (content: Buffer, ...flags: readonly string[]) =>
  pipeThrough(['xz', '-c', '-0', ...flags], content)
const BLOCKS = xz(CONTENT, '--block-size=1024')

const measure = (bytes: Buffer, windowBytes = 0) => {
  const { step } = followSteps(measureXz(bytes.subarray(0, 512), bytes.length), bytes, windowBytes)
  return step.kind === 'known' ? step.virtual : step
}
const wordsOf = (bytes: Buffer) => {
  const found = measure(bytes)
  return found.kind === 'refused' ? found.refusal : found
}
const exact = (bytes: number) => ({ kind: 'exact', bytes })

test('the size of one stream, whatever its blocks and its check', () => {
  assert.equal(measure(xz(CONTENT)), exact(CONTENT.length))
  assert.equal(measure(xz(CONTENT, '-T2')), exact(CONTENT.length))
  assert.equal(measure(xz(Buffer.alloc(0))), exact(0))
  for (const check of ['none', 'crc32', 'crc64', 'sha256']) {
    assert.equal(measure(xz(CONTENT, `--check=${check}`)), exact(CONTENT.length), check)
  }
  for (const windowBytes of [0, 100, 1_000_000]) {
    assert.equal(measure(BLOCKS, windowBytes), exact(CONTENT.length))
  }
  assert.is(followSteps(measureXz(BLOCKS, BLOCKS.length), BLOCKS).reads, 3)
})

const pad = (bytes: number) => Buffer.alloc(bytes)

test('several streams, with padding between and behind', () => {
  const file = Buffer.concat([
    BLOCKS,
    xz(Buffer.alloc(0)),
    pad(4),
    xz(CONTENT),
    pad(5000),
    BLOCKS,
    pad(2044),
  ])
  for (const windowBytes of [0, 300, 1_000_000]) {
    assert.equal(measure(file, windowBytes), exact(3 * CONTENT.length))
  }
})

test('endless padding is not followed', () => {
  const file = Buffer.concat([BLOCKS, Buffer.alloc(2 ** 21)])
  assert.equal(measure(file), { kind: 'unknown' })
  assert.equal(measure(Buffer.concat([file, BLOCKS])), { kind: 'at-least', bytes: CONTENT.length })
})

test('an index larger than we hold is not read', () => {
  const footer = Buffer.from(BLOCKS.subarray(-12))
  footer.writeUInt32LE(MAX_INDEX_BYTES / 4, 4)
  footer.writeUInt32LE(crc32(footer.subarray(4, 10)), 0)
  const file = Buffer.concat([BLOCKS.subarray(0, 12), Buffer.alloc(MAX_INDEX_BYTES + 8), footer])
  assert.equal(measure(file), { kind: 'unknown' })
})

const cutOff = (bytes: number) =>
  `its end is not valid xz: it is cut off after ${bytes} bytes, or other data follows`

test('what is wrong is said with its place', () => {
  for (const bytes of [12, 20, 24, 1000, 5001, BLOCKS.length - 4, BLOCKS.length - 1]) {
    assert.is(wordsOf(BLOCKS.subarray(0, bytes)), cutOff(bytes))
  }
  assert.is(wordsOf(BLOCKS.subarray(0, 7)), cutOff(7))
  assert.is(wordsOf(Buffer.concat([BLOCKS, Buffer.from('1234')])), cutOff(BLOCKS.length + 4))
  assert.is(wordsOf(Buffer.from('no xz here, none at all')), 'no xz data in it')
  assert.is(wordsOf(changed(BLOCKS, 8)), 'its xz header is damaged')
  assert.is(
    wordsOf(changed(BLOCKS, BLOCKS.length - 20)),
    `its xz index near byte ${indexAt()} is damaged`,
  )
  const missing = Buffer.concat([BLOCKS.subarray(0, 1000), BLOCKS.subarray(1004)])
  assert.match(String(wordsOf(missing)), /does not fit its data/)
  const behind = Buffer.concat([Buffer.from(BLOCKS), Buffer.alloc(4, 1), BLOCKS])
  assert.match(String(wordsOf(behind)), /stream that ends near byte/)
})

const changed = (bytes: Buffer, at: number) => {
  const copy = Buffer.from(bytes)
  copy.writeUInt8(copy.readUInt8(at) ^ 1, at)
  return copy
}
const indexAt = () => {
  const footer = parseXzFooter(BLOCKS, BLOCKS.length - 12)
  return footer.ok ? BLOCKS.length - 12 - footer.value.indexBytes : 0
}

test('an index adds up its records', () => {
  const parsed = parseXzIndex(BLOCKS.subarray(indexAt(), -12))
  if (!parsed.ok) throw new Error(parsed.refusal)
  assert.is(parsed.value.blocks, Math.ceil(CONTENT.length / 1024))
  assert.is(parsed.value.contentBytes, CONTENT.length)
  assert.is(parsed.value.blockBytes, indexAt() - 12)
})

/** An index of the given bytes, padded, with a checksum that is right. */
const indexOf = (bytes: readonly number[]) => {
  const body = Buffer.from([
    ...bytes,
    ...Array.from({ length: (4 - (bytes.length % 4)) % 4 }, () => 0),
  ])
  const sum = Buffer.alloc(4)
  sum.writeUInt32LE(crc32(body))
  return Buffer.concat([body, sum])
}

test('an index with the right checksum may still be wrong', () => {
  const most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]
  const rows: readonly (readonly [readonly number[], boolean])[] = [
    [[0, 0], true],
    [[0, 1, 5, 0], true],
    [[0, 1, 0x85, 1, 9], true],
    [[1, 1, 5, 0], false], // no index
    [[0, 1, 4, 0], false], // too small for a block
    [[0, 2, 5, 0], false], // fewer records than it says
    [[0, 0, 5, 0, 5, 0, 5], false], // more than it says
    [[0, 0x81, 0, 5, 0], false], // a number longer than it must be
    [[0, ...most], false],
    [[0, 1, ...most, 1], false],
    [[0, 1, 5, ...most], false],
    [[0, 1, 5, ...most.slice(0, 8), 0xff, 1], false],
    [[0, 0x80, 0x80], false],
  ]
  for (const [bytes, isRight] of rows)
    assert.is(parseXzIndex(indexOf(bytes)).ok, isRight, bytes.join())
  assert.not(parseXzIndex(Buffer.alloc(7)).ok)
})

test('fuzz: measuring damaged files ends within them; a size that is found is the size', () => {
  const files = [
    BLOCKS,
    xz(makeContent(300)),
    Buffer.concat([xz(Buffer.from('a')), Buffer.alloc(8), BLOCKS]),
  ]
  const anyFile = fc.constantFrom(...files).chain(damaged)
  fc.assert(
    fc.property(anyFile, fc.nat(3000), (file, windowBytes) => {
      const found = measure(file, windowBytes)
      assert.equal(found, measure(file))
      // Indexes are checksummed, so damage that they do not notice leaves the sizes as they were.
      if (found.kind === 'exact') assert.ok([100_000, 300, 100_001, 1].includes(found.bytes))
    }),
    { numRuns: 800 },
  )
})

test('fuzz: any bytes are a header, footer or index, or none', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const file = Buffer.from(bytes)
      for (let at = 0; at <= file.length; at++) {
        parseXzHeader(file, at)
        parseXzFooter(file, at)
      }
      parseXzIndex(file)
      parseXzIndex(indexOf([0, ...bytes]))
      const start = BLOCKS.subarray(0, 12)
      measure(Buffer.concat([start, file]))
      measure(Buffer.concat([start, file, BLOCKS.subarray(-12)]))
    }),
    { numRuns: 1000 },
  )
})

test.run()
