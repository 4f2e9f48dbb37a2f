/** The grammar against JSON.parse, and what is taken out of documents that come in pieces. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createJsonGrammar } from '../../../../runtime/kit/foundation/json/json-grammar.ts'
import { createJsonSift } from '../../../../runtime/kit/foundation/json/json-sift.ts'
import type { Wanted } from '../../../../runtime/kit/foundation/json/json-sift-frames.ts'

const test = suite('JSON as it arrives')

const LISTENER = { begin() {}, end() {}, beginKey() {}, endKey() {} }

function isTaken(bytes: Uint8Array, pieceBytes: number, maxDepth = 100): boolean {
  const grammar = createJsonGrammar(maxDepth, LISTENER)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    if (!grammar.push(bytes.subarray(at, at + pieceBytes))) return false
  }
  return grammar.end() === null
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const TEXTS = [
  '',
  ' ',
  '0',
  '-0',
  '01',
  '-',
  '1.',
  '.5',
  '1.5e',
  '1e+',
  '1E-7',
  '1e5 ',
  '--1',
  '+1',
  'true',
  'tru',
  'truex',
  'false',
  'null',
  'nul',
  'NaN',
  'undefined',
  "'a'",
  '"a',
  '[]',
  '[,]',
  '[1,]',
  '[1 2]',
  '[1,2',
  '[]]',
  '{}',
  '{,}',
  '{"a"}',
  '{"a":}',
  '{"a":1,}',
  '{"a":1 "b":2}',
  '{a:1}',
  '{"a":1]',
  '[1}',
  '{"a":[{"b":null}]}',
  '1 2',
  '[] []',
  '\ufeff1',
  '"\\u12g4"',
  '"\\u1234"',
  '"\\x"',
  '"\\"',
  '"\\\\"',
  '"\t"',
  '"\u007f"',
  '"\\ud800"',
  '"ä€😀"',
]

test('takes what JSON.parse takes, and nothing else', () => {
  for (const text of TEXTS) {
    for (const pieceBytes of [1, 3, 1000]) {
      assert.is(isTaken(Buffer.from(text), pieceBytes), isJson(text), `${text} by ${pieceBytes}`)
    }
  }
})

function checkDamaged(value: unknown, at: number, byte: string, pieceBytes: number) {
  const text = JSON.stringify(value, null, at % 3)
  assert.ok(isTaken(Buffer.from(text), pieceBytes, 1000))
  const place = at % (text.length + 1)
  const damaged = `${text.slice(0, place)}${byte}${text.slice(place + 1)}`
  assert.is(isTaken(Buffer.from(damaged), pieceBytes, 1000), isJson(damaged), damaged)
}

test('any document is taken, and any damage to it is judged as JSON.parse does', () => {
  const byte = fc.constantFrom('', ...'{}[],:"\\ \n0159-+.eEtruefalsn\u0001')
  fc.assert(
    fc.property(fc.jsonValue(), fc.nat(), byte, fc.integer({ min: 1, max: 9 }), checkDamaged),
    {
      numRuns: 3000,
    },
  )
})

const deep = (levels: number) => Buffer.from(`${'['.repeat(levels)}${']'.repeat(levels)}`)

test('levels are limited', () => {
  assert.equal([isTaken(deep(100), 64), isTaken(deep(101), 64)], [true, false])
  const grammar = createJsonGrammar(3, LISTENER)
  grammar.push(Buffer.from('[[[['))
  assert.is(grammar.defect(), 'too-deep')
})

const SMALL = { kind: 'small' } as const
const WANTED: Wanted = {
  kind: 'object',
  keys: new Map<string, Wanted>([
    ['list', { kind: 'list', of: { kind: 'object', keys: new Map([['a', SMALL]]) }, most: 2 }],
    ['tree', { kind: 'verbatim', maxBytes: 20, maxValues: 5 }],
    ['one', SMALL],
  ]),
}

function takeFrom(text: string, pieceBytes: number) {
  const sift = createJsonSift(WANTED, 100)
  const bytes = Buffer.from(text)
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    assert.ok(sift.push(bytes.subarray(at, at + pieceBytes)))
  }
  const sifted = sift.end()
  assert.ok(sifted.ok)
  const tree = sifted.value.verbatim.get('tree')?.bytes ?? null
  return { ...sifted.value, tree: tree === null ? null : Buffer.from(tree).toString() }
}

test('takes what is wanted, whatever stands around it and wherever the pieces end', () => {
  const text =
    '{"more":[{"list":1}],"list":[{"b":[1],"a":"x"},{"a":"y"},{"a":"z"}],"on\\u0065":-1.50,"tree":[ 1, {} ]}'
  for (let pieceBytes = 1; pieceBytes < 12; pieceBytes++) {
    const { value, tree, leftOut } = takeFrom(text, pieceBytes)
    assert.equal(value, { list: [{ a: 'x' }, { a: 'y' }], one: -1.5 })
    assert.equal([tree, leftOut], ['[ 1, {} ]', 1])
  }
})

test('what is over a limit is left out, and holds no memory', () => {
  assert.is(takeFrom('{"tree":[1,2,3,4,5]}', 4).tree, '[1,2,3,4,5]')
  assert.is(takeFrom('{"tree":[1,2,3,4,5,6]}', 4).tree, null)
  assert.is(takeFrom(`{"tree":"${'x'.repeat(19)}"}`, 4).tree, null)
  const endless = createJsonSift(WANTED, 100)
  endless.push(Buffer.from('{"tree":["'))
  for (let n = 0; n < 100; n++) endless.push(Buffer.alloc(65_536, 0x61))
  assert.is(endless.held(), 0)
  assert.equal(takeFrom(`{"one":"${'x'.repeat(9000)}"}`, 64).value, { one: ' '.repeat(2048) })
  assert.equal(takeFrom(`{"list":5,"one":[${'1,'.repeat(9000)}1]}`, 64).value, { list: 5, one: [] })
})

test('a document of another kind is its own value', () => {
  for (const text of ['[]', '7', '"x"', 'null', '{}']) {
    assert.equal(takeFrom(text, 1).value, JSON.parse(text))
  }
})

test.run()
