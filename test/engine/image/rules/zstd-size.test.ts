import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { measureZstd, parseSeekFooter, parseSeekTable } from '#engine/image/rules/zstd.ts'
import {
  damaged,
  followSteps,
  fromFile,
  makeContent,
  pipeThrough,
  pzstd,
  seekable,
  skippable,
} from '#test/support/disk/compressed.ts'
import { makeBytes } from '#test/support/collect.ts'

const test = suite('zstd size')

const WAYS = ['walk', 'glance'] as const
/** A frame of this content is larger than what a glance walks. */
const LARGE = makeBytes(400_000)
const PART = makeContent(200_000)
const zstd = (content: Buffer, ...flags: readonly string[]) =>
  fromFile(['zstd', '-q', '-c', ...flags, '{}'], content)

const measure = (bytes: Buffer, way: (typeof WAYS)[number], windowBytes = 0) => {
  const { step } = followSteps(measureZstd(bytes.length, way), bytes, windowBytes)
  return step.kind === 'known' ? step.virtual : step
}
const exact = (bytes: number) => ({ kind: 'exact', bytes })
const atLeast = (bytes: number) => ({ kind: 'at-least', bytes })

test('one frame: exact either way', () => {
  for (const content of [LARGE, PART, Buffer.from('x'), Buffer.alloc(0)]) {
    for (const way of WAYS) {
      assert.equal(measure(zstd(content), way), exact(content.length), way)
      assert.equal(measure(zstd(content), way, 65_536), exact(content.length), way)
    }
  }
})

test('several frames: a walk adds them up, a glance knows that there are more', () => {
  const file = Buffer.concat([zstd(LARGE), skippable(LARGE), zstd(PART), zstd(LARGE)])
  assert.equal(measure(file, 'walk'), exact(2 * LARGE.length + PART.length))
  assert.equal(measure(file, 'glance'), atLeast(LARGE.length))
  const small = Buffer.concat([zstd(Buffer.from('x')), zstd(LARGE)])
  assert.equal(measure(small, 'glance', 65_536), atLeast(1 + LARGE.length))
})

test('a skippable frame before the first one is passed over', () => {
  const file = Buffer.concat([skippable(LARGE), zstd(LARGE)])
  for (const way of WAYS) assert.equal(measure(file, way), exact(LARGE.length))
})

test('frames that do not say their size: a lower bound of those that do', () => {
  const piped = pipeThrough(['zstd', '-q', '-c'], LARGE)
  for (const way of WAYS) assert.equal(measure(piped, way), { kind: 'unknown' })
  assert.equal(measure(pzstd(LARGE), 'walk'), { kind: 'unknown' })
  assert.equal(measure(Buffer.concat([piped, zstd(PART)]), 'walk'), atLeast(PART.length))
  assert.equal(measure(Buffer.concat([zstd(PART), piped]), 'walk'), atLeast(PART.length))
})

test('a seek table is read from the end, and believed only when it covers the file', () => {
  for (const hasChecksums of [false, true]) {
    const file = seekable([LARGE, PART, LARGE], hasChecksums)
    const total = 2 * LARGE.length + PART.length
    assert.equal(measure(file, 'glance'), exact(total))
    assert.equal(measure(file, 'walk'), exact(total))
    assert.is(followSteps(measureZstd(file.length, 'glance'), file).reads, 2)
    const more = Buffer.concat([zstd(LARGE), file])
    assert.equal(measure(more, 'glance'), atLeast(LARGE.length))
  }
})

test('seek tables: every field that must be right', () => {
  const file = seekable([PART])
  const footer = parseSeekFooter(file, file.length - 9)
  assert.equal(footer, { ok: true, value: { frames: 1, entryBytes: 8, tableBytes: 25 } })
  if (!footer.ok) return
  const table = file.subarray(-25)
  const frameBytes = file.length - 25
  assert.equal(parseSeekTable(table, footer.value), {
    ok: true,
    value: { frameBytes, contentBytes: PART.length },
  })
  const no = { ok: false, refusal: 'no-table' }
  assert.equal(parseSeekTable(table.subarray(1), footer.value), no)
  for (const at of [0, 3, 4]) {
    const wrong = Buffer.from(table)
    wrong[at] = 0xff
    assert.equal(parseSeekTable(wrong, footer.value), no)
  }
  for (const [at, byte] of [
    [24, 0],
    [20, 4],
  ] as const) {
    const wrong = Buffer.from(table)
    wrong[at] = byte
    assert.equal(parseSeekFooter(wrong, 16), no)
  }
})

const stoppedAfter = (bytes: Buffer, reads: number) => {
  let step = measureZstd(bytes.length, 'walk')
  for (let read = 0; read < reads && step.kind === 'read'; read++) {
    step = step.take(bytes.subarray(step.at, step.at + step.length))
  }
  return step.kind === 'read' ? step.stopped : step
}

test('stopped in the middle: the one frame so far, or a lower bound', () => {
  assert.equal(stoppedAfter(zstd(LARGE), 0), { kind: 'unknown' })
  assert.equal(stoppedAfter(zstd(LARGE), 1), exact(LARGE.length))
  assert.equal(stoppedAfter(pipeThrough(['zstd', '-q', '-c'], LARGE), 2), { kind: 'unknown' })
  const two = Buffer.concat([zstd(Buffer.from('x')), zstd(LARGE)])
  assert.equal(stoppedAfter(two, 2), atLeast(1 + LARGE.length))
})

test('what is cut off or followed by something is found by a walk, however it reads', () => {
  const file = zstd(LARGE)
  for (const windowBytes of [0, 1000, 1_000_000]) {
    assert.equal(measure(file.subarray(0, -1), 'walk', windowBytes), {
      kind: 'refused',
      refusal: `the zstd data ends after ${file.length - 1} bytes, in the middle of a frame`,
    })
    assert.equal(measure(Buffer.concat([file, Buffer.from('?')]), 'walk', windowBytes), {
      kind: 'refused',
      refusal: `something that is not zstd data follows at byte ${file.length}`,
    })
  }
})

test('fuzz: measuring ends, within the file, and the same for every way of reading', () => {
  const files = [
    zstd(makeContent(20_000), '--zstd=wlog=10'),
    Buffer.concat([zstd(makeContent(99)), skippable(Buffer.alloc(30)), zstd(makeContent(300))]),
    Buffer.concat([skippable(LARGE), seekable([makeContent(99), makeContent(300)])]),
  ]
  const anyFile = fc.constantFrom(...files).chain(damaged)
  fc.assert(
    fc.property(anyFile, fc.constantFrom(...WAYS), fc.nat(5000), (file, way, windowBytes) => {
      const found = measure(file, way, windowBytes)
      if (way === 'walk') assert.equal(found, measure(file, way))
    }),
    { numRuns: 600 },
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const file = Buffer.concat([Buffer.from('28b52ffd', 'hex'), bytes])
      for (const way of WAYS) measure(file, way)
      parseSeekFooter(Buffer.from(bytes), 0)
    }),
  )
})

test.run()
