import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { nearestOf } from '#kit/foundation/nearest.ts'

const test = suite('nearestOf')
const WORDS = ['list', 'inspect', 'flash', '--image', '--target', '--image-root', 'cloud-init']

test('finds what was meant', () => {
  const rows: readonly (readonly [string, string | null])[] = [
    ['flsah', 'flash'],
    ['lst', 'list'],
    ['FLASH', 'flash'],
    ['--traget', '--target'],
    ['--imag', '--image'],
    ['cloudinit', 'cloud-init'],
    ['banana', null],
    ['', null],
    ['x'.repeat(100_000), null],
  ]
  for (const [given, meant] of rows) assert.is(nearestOf(given, WORDS), meant)
})
test('a known word is its own nearest', () => {
  for (const word of WORDS) assert.is(nearestOf(word, WORDS), word)
})
test('never fails', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.array(fc.string()), (given, known) => {
      const found = nearestOf(given, known)
      assert.ok(found === null || known.includes(found))
    }),
  )
})
test.run()
