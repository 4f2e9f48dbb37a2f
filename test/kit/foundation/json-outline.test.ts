import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outlineJson } from '#kit/foundation/json-outline.ts'

const test = suite('outlineJson')

const listInside = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.values(value) : []
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...listInside(value).map(depthOf))
    : 0
const countOf = (value: unknown): number =>
  1 + listInside(value).reduce<number>((sum, inside) => sum + countOf(inside), 0)

test('depth, values and the member are those of what JSON.parse makes of it', () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 6 }),
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.nat(3),
      (json, more, blanks) => {
        const value: unknown = JSON.parse(json)
        const text = JSON.stringify(
          { ...more, 'a "key"': 1, it: value, ...(blanks > 0 && { end: 2 }) },
          null,
          blanks,
        )
        const whole: unknown = JSON.parse(text)
        const bytes = Buffer.from(text)
        const { depth, values, member } = outlineJson(bytes, 'it')
        assert.equal([depth, values], [depthOf(whole), countOf(whole)])
        const found = bytes.subarray(member?.from, member?.to).toString()
        assert.equal(JSON.parse(found), value)
        assert.is(found, found.trim())
        assert.is(member?.values, countOf(value) - 1)
      },
    ),
  )
})

const at = (text: string) => {
  const { depth, values, member } = outlineJson(Buffer.from(text), 'm')
  return [depth, values, member && text.slice(member.from, member.to)]
}

test('counts what is not in texts; the member is one of the outermost object, the last of its name', () => {
  assert.equal(at('{"a":"[[{,\\"[,","b":"\\\\"}'), [1, 3, null])
  assert.equal(at('{"m":1 , "m" :\n[ 2 ] }'), [2, 4, '[ 2 ]'])
  assert.equal(at('{"m":1,"\\u006d":2}'), [1, 3, '2'])
  assert.equal(at('{"a":{"m":1},"b":"m"}'), [2, 4, null])
  assert.equal(at('[{"m":1}]'), [2, 3, null])
  assert.equal(at(' 7 '), [0, 1, null])
})

test('any bytes have an outline', () => {
  const byte = fc.constantFrom(...Buffer.from('{}[],:"\\ m0'))
  fc.assert(
    fc.property(fc.array(byte), (bytes) => {
      const { member } = outlineJson(Buffer.from(bytes), 'm')
      if (member !== null) assert.ok(member.from <= member.to && member.to <= bytes.length)
    }),
    { numRuns: 5000 },
  )
})

test.run()
