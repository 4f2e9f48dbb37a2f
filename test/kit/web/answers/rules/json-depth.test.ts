import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDepthMeter } from '../../../../../runtime/kit/web/answers/rules/json-depth.ts'

const test = suite('createDepthMeter')

const isWithin = (most: number, ...chunks: string[]) => {
  const meter = createDepthMeter(most)
  return chunks.map((chunk) => meter.push(Buffer.from(chunk))).every(Boolean)
}
const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null
    ? 1 + Math.max(0, ...Object.values(value).map(depthOf))
    : 0

test('counts objects and lists, not what is in texts', () => {
  assert.ok(isWithin(2, '{"a":[1,2,{}]}'.replace('{}', '3')))
  assert.not(isWithin(2, '{"a":[1,2,{}]}'))
  assert.ok(isWithin(1, '{"a":"[[[[{{{"}'))
  assert.ok(isWithin(1, '{"a":"\\"[[[[","b":"\\\\"}'))
  assert.not(isWithin(1, '{"a":"\\\\",[["'))
  assert.ok(isWithin(0, '"text"', ''))
  assert.ok(isWithin(1, '{"a":"[[', '', '[["}'))
  assert.ok(isWithin(1, '{"a":"\\', '', '"[["}'))
  assert.not(isWithin(1, '{"a":"\\', '', '"[[",[[]}'))
})

test('pieces of any size are the same text', () => {
  fc.assert(
    fc.property(
      fc.json({ maxDepth: 6 }),
      fc.nat(8),
      fc.integer({ min: 1, max: 7 }),
      (json, most, size) => {
        const bytes = Buffer.from(json)
        const meter = createDepthMeter(most)
        let isFine = true
        for (let at = 0; at < bytes.length; at += size) {
          isFine = meter.push(bytes.subarray(at, at + size)) && isFine
        }
        assert.is(isFine, depthOf(JSON.parse(json)) <= most)
      },
    ),
  )
})

test.run()
