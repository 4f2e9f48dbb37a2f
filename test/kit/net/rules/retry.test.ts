import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideDelay, parseRetryAfter } from '#kit/net/rules/network-failure.ts'

const test = suite('retry')

test('waits twice as long each time, spread, and never for long', () => {
  assert.equal(
    [1, 2, 3, 4, 5].map((tries) => decideDelay(tries, 500, 1)),
    [500, 1000, 2000, 4000, 8000],
  )
  assert.is(decideDelay(1, 500, 0), 250)
  assert.is(decideDelay(1000, 500, 1), 15_000)
})

test('obeys Retry-After within bounds', () => {
  assert.is(parseRetryAfter(undefined, Number.NaN), null)
  assert.is(parseRetryAfter('3', Number.NaN), 3000)
  assert.is(parseRetryAfter('999999', Number.NaN), 60_000)
  assert.is(parseRetryAfter('a date', 2000), 2000)
  assert.is(parseRetryAfter('a past date', -2000), 0)
  assert.is(parseRetryAfter('nonsense', Number.NaN), null)
})

test.run()
