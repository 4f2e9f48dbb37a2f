/** A few disks with tables, types and leftovers of all kinds are captured, and no byte that a system may read is lost. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { captureLayouts } from '#test/support/capture/layouts/layout-trip.ts'

const test = suite('captured layouts from seeds')
const MIB = 1 << 20
const LAYOUTS = 8

test(`${LAYOUTS} layouts lose nothing`, async () => {
  const { lost, freedBytes } = await captureLayouts(Array.from({ length: LAYOUTS }, (_, at) => at))
  assert.equal(lost, [])
  // What is surely free is left out.
  assert.ok(freedBytes > 20 * MIB, String(freedBytes))
})

test.run()
