import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderDuration, renderPercent, renderRate } from '../../../runtime/core/foundation/rate.ts'
import { renderExactSize, renderPartOf, renderSize } from '../../../runtime/core/foundation/size.ts'

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
test.run()
