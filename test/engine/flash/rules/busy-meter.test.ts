import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createBusyMeter } from '#engine/flash/rules/zeros.ts'

const test = suite('busy meter')
const MIB = 1 << 20

test('says nothing before it saw enough', () => {
  const meter = createBusyMeter()
  assert.is(meter.rate, null)
  meter.begin(0)
  assert.is(meter.rate, null)
  meter.end(1, 8 * MIB - 1)
  assert.is(meter.rate, null)
  meter.begin(1)
  meter.end(1, 1)
  assert.is(meter.rate, 8 * MIB)
})
test('no time at all is no rate', () => {
  const meter = createBusyMeter()
  meter.begin(5)
  meter.end(5, 100 * MIB)
  assert.is(meter.rate, null)
})
test('idle time does not count', () => {
  const meter = createBusyMeter()
  meter.begin(0)
  meter.end(2, 10 * MIB)
  meter.begin(100)
  meter.end(103, 10 * MIB)
  assert.is(meter.rate, 4 * MIB)
})
test('what overlaps counts once', () => {
  const meter = createBusyMeter()
  meter.begin(0)
  meter.begin(1)
  meter.end(2, 10 * MIB)
  meter.begin(3)
  meter.end(4, 10 * MIB)
  meter.end(5, 10 * MIB)
  assert.is(meter.rate, 6 * MIB)
})
test.run()
