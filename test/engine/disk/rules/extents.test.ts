import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  SHORTEST_ZERO_RUN,
  ZERO_GRAIN,
  createExtentLog,
  splitZeros,
  type Range,
} from '#engine/disk/rules/extents.ts'

const test = suite('extents')

/** Stretches of data and zeros, as lengths; their sum is the chunk's. */
const stretches = fc.array(
  fc.record({
    isZero: fc.boolean(),
    bytes: fc.oneof(
      fc.integer({ min: 1, max: 3 * SHORTEST_ZERO_RUN }),
      fc.constantFrom(ZERO_GRAIN - 1, ZERO_GRAIN, ZERO_GRAIN + 1, SHORTEST_ZERO_RUN),
    ),
  }),
  { maxLength: 12 },
)
type Stretch = { readonly isZero: boolean; readonly bytes: number }

/** Whether the chunk made of these stretches is zero in a range. */
function lookInto(parts: readonly Stretch[]) {
  const ends = parts.map((_, n) => parts.slice(0, n + 1).reduce((sum, { bytes }) => sum + bytes, 0))
  return (at: number, bytes: number) =>
    parts.every(({ isZero, bytes: length }, n) => {
      const end = ends[n] ?? 0
      return isZero || at >= end || at + bytes <= end - length
    })
}
const lengthOf = (parts: readonly Stretch[]) => parts.reduce((sum, { bytes }) => sum + bytes, 0)
const byOffset = (a: Range, b: Range) => a.offset - b.offset

test('a split covers everything exactly once', () => {
  fc.assert(
    fc.property(stretches, (parts) => {
      const { data, zeros } = splitZeros(lengthOf(parts), lookInto(parts))
      let at = 0
      for (const { offset, bytes } of [...data, ...zeros].toSorted(byOffset)) {
        assert.is(offset, at)
        assert.ok(bytes > 0)
        at += bytes
      }
      assert.is(at, lengthOf(parts))
    }),
  )
})
test('a split never calls data zeros', () => {
  fc.assert(
    fc.property(stretches, (parts) => {
      const isZero = lookInto(parts)
      const { zeros } = splitZeros(lengthOf(parts), isZero)
      for (const { offset, bytes } of zeros) assert.ok(isZero(offset, bytes))
    }),
  )
})
test('zeros are taken out where they are long or may go on in the next chunk', () => {
  fc.assert(
    fc.property(stretches, (parts) => {
      const length = lengthOf(parts)
      const { zeros } = splitZeros(length, lookInto(parts))
      for (const { offset, bytes } of zeros) {
        const touchesEnd = offset === 0 || offset + bytes === length
        assert.ok(touchesEnd || bytes >= SHORTEST_ZERO_RUN)
      }
      // Any run with the shortest length and a grain to spare on both sides is found.
      const long = { isZero: true, bytes: SHORTEST_ZERO_RUN + 2 * ZERO_GRAIN }
      const around = splitZeros(length + long.bytes, lookInto([...parts, long]))
      assert.ok(around.zeros.length > 0)
    }),
  )
})
test('asks only for what lies within the chunk', () => {
  for (const length of [0, 1, 511, ZERO_GRAIN, ZERO_GRAIN + 1, 5 * ZERO_GRAIN - 3]) {
    const { data, zeros } = splitZeros(length, (at, bytes) => {
      assert.ok(bytes > 0 && at >= 0 && at + bytes <= length)
      return true
    })
    assert.equal(data, [])
    assert.equal(zeros, length === 0 ? [] : [{ offset: 0, bytes: length }])
  }
})

test('the log gives back what it was given, however much', () => {
  const entry = fc.tuple(fc.maxSafeNat(), fc.nat(), fc.nat({ max: 0xffff_ffff }))
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 3000, size: 'max' }), (entries) => {
      const log = createExtentLog()
      for (const [offset, bytes, checksum] of entries) log.add(offset, bytes, checksum)
      assert.is(log.count, entries.length)
      assert.is(
        log.totalBytes,
        entries.reduce((sum, [, bytes]) => sum + bytes, 0),
      )
      for (const [n, [offset, bytes, checksum]] of entries.entries()) {
        assert.equal(log.at(n), { offset, bytes, checksum })
      }
    }),
    { numRuns: 20 },
  )
})
test.run()
