import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listMistakes } from '#fleet/machine/rules/query.ts'

const VOCABULARY = {
  fields: ['mac', 'label', 'state', 'image'],
  times: ['seen', 'flashed'],
  values: { state: ['armed', 'done', 'failed'] },
  prefixes: ['wwn', 'path'],
}
const list = (text: string) => listMistakes(text, VOCABULARY)

const test = suite('mistakes in a search')

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
