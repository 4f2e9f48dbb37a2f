import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseJson, renderJson, renderJsonLine } from '#kit/foundation/json-reader.ts'

const test = suite('renderJson')

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
