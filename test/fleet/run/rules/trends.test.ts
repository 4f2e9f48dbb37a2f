/** Trends: what is counted of flashes, by day. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { countTrends, type EndedFlash } from '#fleet/run/rules/waterfall.ts'

const test = suite('trends')

const flash = (more: Partial<EndedFlash> = {}): EndedFlash => ({
  began: '2026-11-26T12:00:00.000Z',
  mac: '52:54:00:00:00:01',
  isDone: true,
  ...more,
})
const DAYS = ['2026-11-25', '2026-11-26']
const count = (flashes: readonly EndedFlash[]) =>
  countTrends(flashes, DAYS, (iso) => iso.slice(0, 10))

test('days are in their order, with those of which there is nothing', () => {
  const days = count([
    flash(),
    flash(),
    flash({ isDone: false }),
    flash({ began: '2026-11-01T00:00:00.000Z' }),
  ])
  assert.equal(days, [
    { name: '2026-11-25', done: 0, failed: 0 },
    { name: '2026-11-26', done: 2, failed: 1 },
  ])
})

test.run()
