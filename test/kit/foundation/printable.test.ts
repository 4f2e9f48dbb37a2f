import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  displayWidth,
  plainWords,
  printable,
  printableLines,
  printableText,
} from '#kit/foundation/printable.ts'

const test = suite('printable')

test('terminal escapes, carriage returns and bidirectional overrides do not get through', () => {
  assert.is(printable('a\u001b[31mb'), String.raw`a\x1b[31mb`)
  assert.is(printable('a\r\nb\u0007\u009b'), String.raw`a\x0d\x0ab\x07\x9b`)
  assert.is(printable('gpj\u202egnp.exe'), String.raw`gpj\u202egnp.exe`)
  assert.is(printable('lone \ud800'), String.raw`lone \ud800`)
})
test('whatever the text, the result has no control character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      assert.not.match(printable(text), /\p{Cc}|[\u202a-\u202e\u2066-\u2069]/u)
    }),
  )
})
test('what can be read stays as it is', () => {
  for (const text of ['Samsung SSD 980', 'größe.img', '磁盘.img', 'a — b']) {
    assert.is(printable(text), text)
  }
})
test('line ends of all kinds part lines', () => {
  assert.equal(printableLines('a\r\nb\nc\rd\u001b'), ['a', 'b', 'c', String.raw`d\x1b`])
})
test('a text keeps its lines and its tabs, and no other control character', () => {
  const given = 'a\r\nb\tc\rd\u001b[2Je\0\u202e'
  assert.is(
    printableText(given),
    String.raw`a%b^c%d\x1b[2Je\x00\u202e`.replaceAll('%', '\n').replace('^', '\t'),
  )
})
test('words keep their length: blanks for what parts them, a mark for what obeys nobody', () => {
  assert.is(plainWords('a\u001b[31mb\u009b\u007f\0'), 'a\ufffd[31mb\ufffd\ufffd\ufffd')
  assert.is(plainWords('disk\r\nis\tfull\u0085\u2028'), 'disk  is full  ')
  assert.is(plainWords('gpj\u202egnp\u2066\u200f'), 'gpj\ufffdgnp\ufffd\ufffd')
  assert.is(plainWords('größe 磁盘 🚀'), 'größe 磁盘 🚀')
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const plain = plainWords(text)
      assert.is(plain.length, text.length)
      assert.is(printable(plain), plain)
    }),
  )
})
test('wide and combined characters are counted as a terminal draws them', () => {
  assert.equal(['', 'abc', '磁盘', 'e\u0301', '👩‍🚀'].map(displayWidth), [0, 3, 4, 1, 2])
})
test.run()
