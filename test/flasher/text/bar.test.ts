import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { displayWidth } from '#kit/foundation/printable.ts'
import { fractionOf, renderBar, renderStatus } from '#flasher/text/progress.ts'

const HALF = {
  phase: 'write',
  bytes_read: 500,
  bytes_written: 2_000_000_000,
  total_bytes: 4_000_000_000,
  rate: 412_000_000,
  eta_seconds: 4.85,
} as const
const UNSIZED = { ...HALF, total_bytes: null, eta_seconds: null } as const

const test = suite('bar')

test('percent, amount, rate and time left', () => {
  assert.is(renderStatus(HALF, null), '50%  2.00 of 4.00 GB  412 MB/s  0:05 left')
})
test('without a decoded size, what was read of the file tells how far it is', () => {
  assert.is(fractionOf(UNSIZED, 1000), 0.5)
  assert.is(fractionOf(UNSIZED, null), null)
  assert.is(fractionOf({ ...UNSIZED, phase: 'verify' }, 1000), null)
  assert.is(renderStatus(UNSIZED, 1000), '50%  2.00 GB  412 MB/s')
})
test('drawn in ASCII and in blocks', () => {
  const style = { columns: 80, storedBytes: null }
  assert.is(
    renderBar(HALF, { ...style, unicode: false }),
    ' write   50% [############-------------]  2.00 of 4.00 GB  412 MB/s  0:05 left',
  )
  assert.match(renderBar(HALF, { ...style, unicode: true }), / █{13}▌░{13} /)
})
test('a narrow terminal gets less, never a broken line', () => {
  assert.is(
    renderBar(HALF, { columns: 40, unicode: true, storedBytes: null }),
    ' write   50%  2.00 of 4.00 GB  412 MB/s'.slice(0, 39),
  )
})
test('always shorter than the terminal is wide', () => {
  const count = fc.nat({ max: 2 ** 42 })
  fc.assert(
    fc.property(
      fc.record({
        phase: fc.constantFrom('write' as const, 'verify' as const),
        bytes_read: count,
        bytes_written: count,
        total_bytes: fc.option(count),
        rate: fc.double({ min: 0, max: 1e11, noNaN: true }),
        eta_seconds: fc.option(fc.double({ min: 0, max: 1e9, noNaN: true })),
      }),
      fc.integer({ min: 20, max: 400 }),
      fc.boolean(),
      fc.option(count),
      (progress, columns, unicode, storedBytes) => {
        const drawn = renderBar(progress, { columns, unicode, storedBytes })
        assert.ok(displayWidth(drawn) < columns, drawn)
      },
    ),
  )
})
test.run()
