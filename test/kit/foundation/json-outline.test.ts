import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { outlineJson, parseJson, renderJson, renderJsonLine } from '#kit/foundation/json-reader.ts'

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

test('two-space indent, non-ASCII escaped', () => {
  assert.is(
    renderJson({ a: 'ü\u007f😀', b: [] }),
    '{\n  "a": "\\u00fc\\u007f\\ud83d\\ude00",\n  "b": []\n}',
  )
})
test('a line has a blank behind commas and colons, and nothing else is touched', () => {
  assert.is(
    renderJsonLine({ event: 'started', total_bytes: 300000, note: 'a,\n b', list: [1, { x: [] }] }),
    '{"event": "started", "total_bytes": 300000, "note": "a,\\n b", "list": [1, {"x": []}]}',
  )
})
test('both say what JSON says, in printable ASCII', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value))
      assert.equal(JSON.parse(renderJson(value)), plain)
      assert.equal(JSON.parse(renderJsonLine(value)), plain)
      assert.match(renderJsonLine(value), /^[ -~]*$/)
    }),
  )
})
test('what is no JSON is undefined, and null is JSON', () => {
  for (const text of ['', ' ', '{', '{"a":1', "{'a':1}", 'NaN', 'undefined', '\uFEFF{}']) {
    assert.is(parseJson(text), undefined, text)
  }
  assert.is(parseJson('null'), null)
  assert.equal(parseJson(' {"a": [1]} '), { a: [1] })
})
test('what only looks like a text, a word or a number is no JSON', () => {
  const texts = [
    '"a"b"',
    '"a\n"',
    '"',
    '""a',
    'True',
    'NULL',
    'FALSE',
    'nan',
    'Infinity',
    '-infinity',
  ]
  for (const text of [...texts, '1e999', '01', '1.', '+1', '\uFEFF1', '\u00a0[1]', '[1]\u00a0']) {
    assert.is(parseJson(text), undefined, text)
  }
  for (const value of [
    '',
    'a"b',
    'a\n',
    '\\',
    true,
    false,
    null,
    0,
    -0.5,
    1e21,
    0.1234567890123456,
  ]) {
    assert.is(parseJson(` ${JSON.stringify(value)}\n`), value)
  }
})
test('it reads what JSON.parse reads', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.json().map((text) => text.slice(1)),
      ),
      (text) => {
        let wanted: unknown
        try {
          wanted = JSON.parse(text)
        } catch {
          wanted = undefined
        }
        if (!/__proto__|constructor/.test(text)) assert.equal(parseJson(text), wanted)
      },
    ),
  )
})
test('what could reach into the prototype of a copy is refused', () => {
  for (const key of ['__proto__', '\\u005f_proto__']) {
    assert.is(parseJson(`{"a": {"${key}": {"isAdmin": true}}}`), undefined, key)
  }
})

test.run()
