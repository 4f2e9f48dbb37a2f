import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseTimes, TIMES } from '#fleet/cluster/rules/lease.ts'

const test = suite('times of servers that share a database')

test('they are those of the specification, and a test may shorten them', () => {
  assert.is(parseTimes(undefined), TIMES)
  assert.equal(parseTimes('{"leaseMs":1000}'), { ...TIMES, leaseMs: 1000 })
  assert.is(TIMES.leaseMs, 5000)
  assert.is(TIMES.holdMs, 12_000)
})

for (const [text, why] of [
  ['', 'it is no JSON object'],
  ['5', 'it is no JSON object'],
  ['{"leaseMs":5001}', 'leaseMs must be 100 to 5000'],
  ['{"leaseMs":0}', 'leaseMs must be 100 to 5000'],
  ['{"leaseMs":"1000"}', 'leaseMs must be 100 to 5000'],
  ['{"lease":1000}', 'there is no lease'],
] as const) {
  test(`${text} is refused`, () => {
    assert.throws(() => parseTimes(text), `FLASHER_TEST_TIMES is for tests alone: ${why}`)
  })
}

test.run()
