import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fill, fillCount, pluralOf, splitText, upperFirst } from '#kit/foundation/text.ts'

test('placeholders are filled, in any order and more than once', () => {
  assert.is(fill('{a} of {b}, {a}', { a: 1, b: 'two' }), '1 of two, 1')
  assert.is(fill('no placeholder', {}), 'no placeholder')
})

test('braces in a value are text', () => {
  assert.is(fill('{a}{b}', { a: '{b}', b: 'x' }), '{b}x')
})

test('what is no name in braces is text', () => {
  assert.equal(splitText('a {} { b } {c}'), ['a {} { b } ', 'c', ''])
})

test('a count chooses the form', () => {
  const machines = { one: '{count} machine', other: '{count} machines' } as const
  assert.is(pluralOf(machines, 1), '{count} machine')
  assert.equal(
    [0, 1, 2].map((count) => fillCount(machines, count)),
    ['0 machines', '1 machine', '2 machines'],
  )
})

test('a sentence begins with a capital, but no name is changed by it', () => {
  for (const [text, shown] of [
    ['checksum mismatch', 'Checksum mismatch'],
    ['read-only: no', 'Read-only: no'],
    ['émis', 'Émis'],
    ['image.img.zst: checksum mismatch', 'image.img.zst: checksum mismatch'],
    ['/dev/sda is gone', '/dev/sda is gone'],
    ['boot_mode is wrong', 'boot_mode is wrong'],
    ['', ''],
  ] as const) {
    assert.is(upperFirst(text), shown)
  }
})

test.run()
