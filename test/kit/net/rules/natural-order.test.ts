import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { naturalKey } from '#kit/net/rules/natural-order.ts'

const test = suite('natural order')
const sort = (names: readonly string[]) =>
  names.toSorted((a, b) => (naturalKey(a) < naturalKey(b) ? -1 : 1))

test('numbers count as numbers, case and accents do not', () => {
  assert.equal(sort(['rack-10', 'Rack-2', 'rack-1']), ['rack-1', 'Rack-2', 'rack-10'])
  assert.equal(sort(['10.0.0.12', '10.0.0.7']), ['10.0.0.7', '10.0.0.12'])
  assert.equal(sort(['f', 'é', 'd']), ['d', 'é', 'f'])
})

test('a hostile name is bounded', () => {
  assert.ok(naturalKey('1a'.repeat(100_000)).length < 3000)
  assert.ok(naturalKey('ﷺ'.repeat(100_000)).length < 10_000)
})

test.run()
