/** Numbers that count once: in any order, for each sender on its own, and never again once they are old. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSpentNumbers } from '#kit/web/http/peer.ts'

const test = suite('spent numbers')

test('each counts once, in any order, and for each sender', () => {
  const spend = createSpentNumbers()
  for (const number of [1, 3, 2, 5000, 4999]) assert.ok(spend('a', number), String(number))
  for (const number of [3, 2, 1, 4999, 5000]) assert.not.ok(spend('a', number), String(number))
  assert.ok(spend('b', 3))
})

test('what is older than the last 4,096 counts as used', () => {
  const spend = createSpentNumbers()
  assert.ok(spend('a', 10_000))
  assert.not.ok(spend('a', 10_000 - 4096))
  assert.ok(spend('a', 10_000 - 4095))
  assert.ok(spend('a', 10_001))
  assert.not.ok(spend('a', 10_000 - 4095))
})

test('who goes on is not forgotten for many that are gone', () => {
  const spend = createSpentNumbers()
  assert.ok(spend('a', 1))
  for (let n = 0; n < 1000; n += 1) {
    spend(`gone ${n}`, 1)
    if (n % 100 === 0) assert.not.ok(spend('a', 1))
  }
})

test.run()
