/** 300 disks with tables, types and leftovers of all kinds are captured, and no byte that a system may read is lost. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { captureLayouts } from '#test/support/capture/layouts/layout-trip.ts'

const test = suite('many captured layouts from seeds')
const MIB = 1 << 20
const LAYOUTS = 300
/** One test for so many, so that each has its time. */
const AT_ONCE = 25

for (let from = 0; from < LAYOUTS; from += AT_ONCE) {
  test(`layouts ${from} to ${from + AT_ONCE - 1} lose nothing`, async () => {
    const seeds = Array.from({ length: AT_ONCE }, (_, at) => from + at)
    const { lost, freedBytes } = await captureLayouts(seeds)
    assert.equal(lost, [])
    assert.ok(freedBytes > 20 * MIB, String(freedBytes))
  })
}

test.run()
