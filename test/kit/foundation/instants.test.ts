/** Times are converted exactly, however often they are asked about. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { epochOf } from '#kit/foundation/instants.ts'

const test = suite('instants')

test('milliseconds since the epoch, the same when asked again', () => {
  for (const _ of [1, 2]) {
    assert.is(epochOf('1970-01-01T00:00:00.001Z'), 1)
    assert.is(epochOf('2026-05-01T02:00:00.000+02:00'), Date.UTC(2026, 4, 1))
  }
  for (let ms = 0; ms < 10_000; ms += 1) assert.is(epochOf(new Date(ms).toISOString()), ms)
})

test('what is no time is refused each time', () => {
  for (const _ of [1, 2]) assert.throws(() => epochOf('yesterday'))
})

test.run()
