/** CSV: what is written is read again, spreadsheets of other countries too, and hostile text costs little. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderCsvRow, unguardCell, parseCsv } from '#kit/foundation/csv.ts'
import { printableText } from '#kit/foundation/printable.ts'

const test = suite('CSV')

const LIMITS = { rows: 1000, columns: 50, characters: 1000 }

const parse = (text: string) => {
  const parsed = parseCsv(text, LIMITS)
  if (!parsed.ok) return parsed.refusal
  const { columns, rows } = parsed.value
  return [columns, ...rows.map(({ cells }) => cells)].map((cells) => cells.map(unguardCell))
}

test('what is written is read again, whatever its texts', () => {
  const cell = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: fc.constantFrom("'", '"', '=', ' ', ',', ';', '\t', '\n', 'a', '＝') }),
  )
  fc.assert(
    fc.property(fc.array(fc.array(cell, { minLength: 4, maxLength: 4 })), (rows) => {
      const head = ['mac', 'name', 'rack', 'slot']
      const text = [head, ...rows].map(renderCsvRow).join('')
      const shown = rows.map((cells) => cells.map(printableText))
      const full = shown.filter((cells) => cells.some((each) => each !== ''))
      assert.equal(parse(text), [head, ...full])
    }),
  )
})

test('separators, quotes, line ends and the byte order mark of spreadsheets', () => {
  const wanted = [
    ['mac', 'name'],
    ['a', 'x;y,z\tw'],
    ['b', 'a "quoted"\nname'],
  ]
  for (const separator of [',', ';', '\t']) {
    for (const end of ['\n', '\r\n', '\r']) {
      const rows = ['mac,name', 'a,"x;y,z\tw"', 'b,"a ""quoted""\nname"', ',', '']
      const table = rows.map((row) => row.replace(',', separator)).join(end)
      assert.equal(parse(table), wanted, JSON.stringify(table))
      assert.equal(parse(`\ufeff${table}`), wanted)
    }
  }
  assert.equal(parse('"mac;x",name\n1,2'), [
    ['mac;x', 'name'],
    ['1', '2'],
  ])
  assert.equal(parse("a,b\n'=1+1,'x"), [
    ['a', 'b'],
    ['=1+1', "'x"],
  ])
})

test('a row that does not fit its columns says so; empty cells at the end are harmless', () => {
  const parsed = parseCsv('a,b,\n1,2\n1\n1,2,3\n1,2, ,\n1,2,,3\n1,\n', LIMITS)
  assert.ok(parsed.ok)
  assert.equal(parsed.value.columns, ['a', 'b'])
  assert.equal(
    parsed.value.rows.map(({ line, cells, fits }) => [line, cells.length, fits]),
    [
      [2, 2, true],
      [3, 1, false],
      [4, 3, false],
      [5, 2, true],
      [6, 4, false],
      [7, 2, true],
    ],
  )
})

test('a first line that declares the separator is no row, and lines are counted with it', () => {
  for (const declared of ['sep=;', '"sep=;"', 'SEP=;;;']) {
    const parsed = parseCsv(`\ufeff${declared}\r\na,x;b\r\n1;2`, LIMITS)
    assert.ok(parsed.ok)
    assert.equal(parsed.value.columns, ['a,x', 'b'])
    assert.equal(parsed.value.rows, [{ line: 3, cells: ['1', '2'], fits: true }])
  }
  assert.equal(parse('sep=\t\na\tb\n'), [['a', 'b']])
})

test('a refusal names the line', () => {
  assert.equal(parse('a,b\n\n"x\ny",1\nc,"d'), { why: 'open-quote', line: 5 })
  assert.equal(parse('a,b\nc,"d"e'), { why: 'after-quote', line: 2 })
  assert.equal(parse('a,b\nc,\0'), { why: 'nul', line: 2 })
})

test('hostile text is refused as soon as a limit is passed', () => {
  const hostile = [
    ['"'.repeat(10_000_000), 'characters'],
    [`a,${'"'.repeat(9_999_999)}`, 'characters'],
    ['x'.repeat(10_000_000), 'characters'],
    [','.repeat(1_000_000), 'columns'],
    ['a,b\n'.repeat(1_000_000), 'rows'],
    ['\n'.repeat(10_000_000), 'rows'],
    ['"\n'.repeat(5_000_000), 'rows'],
    [`mac,name\n${'a'.repeat(1000)}\0`, 'nul'],
  ] as const
  for (const [text, why] of hostile) {
    const refusal = parse(text)
    assert.is('why' in refusal ? refusal.why : null, why)
  }
})

test.run()
