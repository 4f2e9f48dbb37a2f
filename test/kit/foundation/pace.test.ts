import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPace } from '#kit/foundation/size.ts'

const test = suite('pace')

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
