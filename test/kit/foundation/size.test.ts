import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  createPace,
  renderDiskSize,
  renderDuration,
  renderExactDiskSize,
  renderExactSize,
  renderMemory,
  renderPartOf,
  renderPercent,
  renderRate,
  renderSize,
} from '#kit/foundation/size.ts'

const test = suite('sizes and rates')

test('three digits that count, in decimal units', () => {
  const rows: readonly (readonly [number, string])[] = [
    [0, '0 B'],
    [999, '999 B'],
    [1000, '1.00 kB'],
    [1536, '1.54 kB'],
    [12_345_678, '12.3 MB'],
    [999_400, '999 kB'],
    [999_600, '1.00 MB'],
    [500_107_862_016, '500 GB'],
    [Number.MAX_SAFE_INTEGER, '9.01 PB'],
    [5e18, '5000 PB'],
  ]
  for (const [bytes, text] of rows) assert.is(renderSize(bytes), text)
})
test('disks read as their makers print them', () => {
  const rows: readonly (readonly [number, string])[] = [
    [512, '512 B'],
    [67_108_864, '67.1 MB'],
    [1_000_000_000, '1 GB'],
    [32_010_928_128, '32 GB'],
    [61_524_148_224, '61.5 GB'],
    [120_034_123_776, '120 GB'],
    [500_107_862_016, '500 GB'],
    [960_197_124_096, '960 GB'],
    [999_999_999_999, '1 TB'],
    [1_000_204_886_016, '1 TB'],
    [1_200_243_695_616, '1.2 TB'],
    [1_920_383_410_176, '1.92 TB'],
    [7_681_501_126_656, '7.68 TB'],
    [15_360_950_534_144, '15.36 TB'],
    [18_000_207_937_536, '18 TB'],
    [122_880_000_000_000, '123 TB'],
  ]
  for (const [bytes, text] of rows) assert.is(renderDiskSize(bytes), text)
  assert.is(renderExactDiskSize(500_107_862_016), '500 GB (500107862016 bytes)')
  assert.is(renderExactDiskSize(0), '0 bytes')
})
test('memory is in GiB', () => {
  const rows: readonly (readonly [number, string])[] = [
    [0, '0 MiB'],
    [2 ** 29, '512 MiB'],
    [2 ** 30, '1 GiB'],
    [1.5 * 2 ** 30, '1.5 GiB'],
    [7.65 * 2 ** 30, '7.65 GiB'],
    [16 * 2 ** 30, '16 GiB'],
    [1536 * 2 ** 30, '1536 GiB'],
  ]
  for (const [bytes, text] of rows) assert.is(renderMemory(bytes), text)
})
test('an exact size keeps the number', () => {
  assert.is(renderExactSize(512), '512 bytes')
  assert.is(renderExactSize(4_294_967_296), '4.29 GB (4294967296 bytes)')
})
test('a part is rendered in the unit of the whole', () => {
  assert.is(renderPartOf(1_800_000_000, 4_000_000_000), '1.80 of 4.00 GB')
  assert.is(renderPartOf(0, 0), '0 of 0 B')
  assert.is(renderPartOf(5_000_000, 12_000_000_000), '0.0 of 12.0 GB')
})
test('rates, durations and percents', () => {
  assert.is(renderRate(412_000_000), '412 MB/s')
  assert.equal([0, 7, 59.6, 723, 3723].map(renderDuration), [
    '0:00',
    '0:07',
    '1:00',
    '12:03',
    '1:02:03',
  ])
  assert.equal([-1, 0, 0.999, 1, 2].map(renderPercent), ['0%', '0%', '99%', '100%', '100%'])
})

test('an even pace is known at once and stays', () => {
  const pace = createPace()
  assert.is(pace.rate, 0)
  assert.is(pace.eta(100), null)
  pace.add(10, 0)
  assert.is(pace.rate, 0)
  for (let second = 1; second <= 30; second += 1) {
    pace.add(10 + second, second * 7)
    assert.is(pace.rate, 7)
    assert.is(pace.eta(second * 7 + 70), 10)
  }
})
test('what is long past is forgotten', () => {
  const pace = createPace()
  pace.add(0, 0)
  pace.add(1, 1_000_000)
  for (let second = 2; second <= 12; second += 1) pace.add(second, 1_000_000 + second)
  assert.is(pace.rate, 1)
})
test('counts that are rare still make a rate', () => {
  const pace = createPace()
  for (let n = 0; n < 5; n += 1) pace.add(n * 60, n * 600)
  assert.is(pace.rate, 10)
})
test('no time left is given where none can be known', () => {
  const pace = createPace()
  pace.add(0, 0)
  pace.add(1, 50)
  assert.is(pace.eta(null), null)
  assert.is(pace.eta(49), null)
  assert.is(pace.eta(50), 0)
  for (let second = 2; second < 20; second += 1) pace.add(second, 50)
  assert.is(pace.rate, 0)
  assert.is(pace.eta(100), null)
})
test('whatever is counted, rate and time are never negative or no number', () => {
  const seconds = fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 20, noNaN: true }))
  const steps = fc.array(fc.tuple(seconds, fc.nat()))
  fc.assert(
    fc.property(steps, fc.nat(), (moves, total) => {
      const pace = createPace()
      let [at, bytes] = [0, 0]
      for (const [after, more] of moves) {
        at += after
        bytes += more
        pace.add(at, bytes)
        const eta = pace.eta(total)
        assert.ok(pace.rate >= 0 && Number.isFinite(pace.rate))
        assert.ok(eta === null || (eta >= 0 && Number.isFinite(eta)))
      }
    }),
  )
})

test.run()
