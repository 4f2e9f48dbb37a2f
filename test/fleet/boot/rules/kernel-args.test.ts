/** Kernel command lines, there and back. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseKernelArgs, renderKernelArgs } from '#fleet/boot/rules/boot-decision.ts'

const test = suite('kernel arguments')

test('names with values, and flags', () => {
  assert.is(
    renderKernelArgs([
      ['flasher.server', 'http://[::1]:8080'],
      ['console', 'ttyS0,115200'],
      ['gpt', null],
    ]),
    'flasher.server=http://[::1]:8080 console=ttyS0,115200 gpt',
  )
})

test('what could be read as anything else is a fault', () => {
  const values = ['', 'a b', 'a"b', "a'b", 'a\nb', '${x}', 'a;b', 'a|b', 'a#b', 'a\\b', 'ä', '\0']
  for (const value of values) assert.throws(() => renderKernelArgs([['a', value]]), /cannot be/)
  for (const name of ['', 'a b', 'a=b', '-a', '1']) {
    assert.throws(() => renderKernelArgs([[name, 'x']]), /cannot be/)
  }
  assert.throws(() => renderKernelArgs([['a', 'x'.repeat(2047)]]), /too long/)
})

test('the last of a name wins, quotes hold blanks together', () => {
  const line =
    'BOOT_IMAGE=/v  a=first b="b c" "d=e f" quiet a=second x=\ty= "flag with blanks" =z end="\n'
  assert.equal(
    [...parseKernelArgs(line)],
    [
      ['BOOT_IMAGE', '/v'],
      ['a', 'second'],
      ['b', 'b c'],
      ['d', 'e f'],
      ['quiet', ''],
      ['x', ''],
      ['y', ''],
      ['flag with blanks', ''],
      ['end', ''],
    ],
  )
})

test('what was rendered is parsed as it was', () => {
  const anyArg = fc.tuple(
    fc.stringMatching(/^[a-z][\w.-]{0,20}$/),
    fc.oneof(fc.constant(null), fc.stringMatching(/^[\w.~:/?=&%@,+[\]-]{1,30}$/)),
  )
  fc.assert(
    fc.property(fc.uniqueArray(anyArg, { selector: ([name]) => name, maxLength: 10 }), (args) => {
      const parsed = parseKernelArgs(renderKernelArgs(args))
      assert.equal(
        [...parsed],
        args.map(([name, value]) => [name, value ?? '']),
      )
    }),
  )
})

test('no line makes the parser fail', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (line) => {
      for (const [name] of parseKernelArgs(line)) assert.not.match(name, '=')
    }),
    { numRuns: 2000 },
  )
})

test.run()
