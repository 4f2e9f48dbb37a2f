import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  findUnheeded,
  foldRow,
  listMistakes,
  matchesQuery,
  parseQuery,
  type Searchable,
} from '#fleet/machine/rules/query.ts'

const VOCABULARY = { fields: ['mode', 'label', 'state', 'mac'], times: ['seen'] }
const parse = (text: string) => parseQuery(text, VOCABULARY)
const NOW = 1_800_000_000_000

const ROW: Searchable = {
  text: 'aa:bb:cc:dd:ee:01 Rack-1 debian-13.img.zst 10.0.0.7',
  fields: {
    mode: ['flasher-flash-once', 'flash-once'],
    label: ['Rack-1', 'lab one'],
    state: ['armed'],
  },
  times: { seen: NOW - 30 * 60_000 },
}
const finds = (text: string) => matchesQuery(parse(text), foldRow(ROW), NOW)

const test = suite('query')

for (const text of [
  '',
  'debian',
  'DEBIAN 10.0.0',
  'aa:bb:cc',
  'mode:flash-once',
  'MODE:flasher-flash-once label:rack-1',
  'label:"lab one"',
  'label:rack*',
  'label:*',
  'state:done,armed',
  '-state:done',
  'seen:<1h',
  'seen:1h',
  'seen:>20m',
  '-seen:never',
  '"debian-13.img.zst 10"',
  '-fedora',
  'state:',
  '-',
]) {
  test(`finds the row: ${text}`, () => {
    assert.ok(finds(text))
  })
}
for (const text of [
  'fedora',
  'mode:flash',
  'label:rack-1 state:done',
  '-label:*',
  'seen:<20m',
  'seen:>1h',
  'seen:never',
  '-debian',
  'unknown:key',
  'mac:*',
]) {
  test(`does not find it: ${text}`, () => {
    assert.not(finds(text))
  })
}

test('what was never seen is neither young nor old', () => {
  const row = { ...ROW, times: { seen: null } }
  for (const text of ['seen:<1h', 'seen:>1h']) assert.not(matchesQuery(parse(text), row, NOW))
  assert.ok(matchesQuery(parse('seen:never'), row, NOW))
})

test('any text is a query, soon parsed, of a bounded number of terms', () => {
  const piece = fc.oneof(
    fc.string(),
    fc.constantFrom('-', 'mode:', 'label:"a b",c', 'seen:<3d', ':', '"', ' ', ',', '*', 'seen:x'),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const query = parse(pieces.join(''))
      assert.ok(query.length <= 32)
      assert.type(matchesQuery(query, foldRow(ROW), NOW), 'boolean')
    }),
    { numRuns: 2000 },
  )
})

test('a very long text is cut, not refused', () => {
  assert.ok(parse('x '.repeat(100_000)).length <= 32)
})

test('a term that leaves nobody out is found, with the reason', () => {
  for (const [text, term] of [
    ['label:', 'label:'],
    ['rack-1 -state:', '-state:'],
    ['LABEL:"",', 'LABEL:"",'],
    ['seen:', 'seen:'],
    ['"', '"'],
  ] as const) {
    assert.equal(findUnheeded(text), { term, why: 'empty' }, text)
  }
  for (const text of [
    '',
    ' ',
    ':',
    '-',
    'aa:',
    'aa:bb:',
    '52:54:',
    'label:x',
    'a "b c"',
    'label:*',
  ])
    assert.is(findUnheeded(text), null, text)
  const words = Array.from({ length: 33 }, (_, at) => `-mac:${at}`)
  assert.is(findUnheeded(words.slice(0, 32).join(' ')), null)
  assert.equal(findUnheeded(words.join(' ')), { term: '-mac:32', why: 'too-many' })
})

const MISTAKEN = {
  fields: ['mac', 'label', 'state', 'image'],
  times: ['seen', 'flashed'],
  values: { state: ['armed', 'done', 'failed'] },
  prefixes: ['wwn', 'path'],
}
const list = (text: string) => listMistakes(text, MISTAKEN)

test('a filter that does not exist, with the one that may be meant', () => {
  assert.equal(list('rack-1 stat:failed'), [
    {
      term: 'stat:failed',
      what: 'filter',
      suggestion: 'state:failed',
      corrected: 'rack-1 state:failed',
    },
  ])
  assert.is(list('-lable:"lab one"')[0]?.corrected, '-label:"lab one"')
  assert.equal(list('colour:red'), [
    { term: 'colour:red', what: 'filter', suggestion: null, corrected: null },
  ])
})

test('a value that a filter never has, and a time that is none', () => {
  assert.is(list('state:done,fialed')[0]?.suggestion, 'state:done,failed')
  assert.equal(
    list('state:x seen:yesterday').map(({ what, suggestion }) => [what, suggestion]),
    [
      ['value', null],
      ['time', null],
    ],
  )
})

for (const text of [
  '',
  'state:failed,done',
  'state:f*',
  'label:anything',
  'seen:<1h flashed:never',
  '52:54:00:a1:00:05',
  'fe80::5054:ff:fe12:3456',
  'ab:cd',
  'wwn:0x5000c500a1b2c3d4',
  'path:pci-0000:00:1f.2-ata-1',
  '"quoted: text"',
  ':x',
  'https://images.invalid/debian.img',
]) {
  test(`nothing is wrong with: ${text}`, () => {
    assert.equal(list(text), [])
  })
}

test('a suggestion is a filter that exists, whatever was typed', () => {
  const piece = fc.oneof(fc.string(), fc.constantFrom('stat:', 'state:fail', '-', '"', ':', ' '))
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      for (const { suggestion } of list(pieces.join(''))) {
        if (suggestion !== null) assert.not(list(suggestion).some(({ what }) => what === 'filter'))
      }
    }),
    { numRuns: 1000 },
  )
})

test.run()
