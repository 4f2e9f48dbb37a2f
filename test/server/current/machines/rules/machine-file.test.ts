/** A file with names and labels: what an export writes changes nothing, and what each line changes is decided alone. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ACTIONS } from '#server/current/machines/rules/action.ts'
import {
  applyIdentity,
  createLinePlanner,
  findTwins,
  parseMachineFile,
  MACHINES_CSV_HEAD,
  renderMachineCsv,
} from '#server/current/machines/rules/machine-file.ts'
import {
  NameSchema,
  sortLabels,
  createMachine,
  type Identity,
} from '#server/current/machines/rules/machine.ts'
import { LabelSchema } from '#fleet/machine/rules/label.ts'
import { asMac } from '#test/support/people/canaries.ts'

const test = suite('machine file')

const MAC = asMac('52:54:00:00:00:01')
const NOW = '2026-11-27T08:00:00.000Z'

/** The lines of a file as they would change these machines. */
function plan(text: string, fleet: Readonly<Record<string, Identity>>) {
  const file = parseMachineFile(text)
  assert.ok(file.ok, file.ok ? '' : file.refusal)
  return file.value.rows.map(createLinePlanner(file.value, (mac) => fleet[mac] ?? null))
}

const refusalOf = (text: string) => {
  const file = parseMachineFile(text)
  return file.ok ? null : file.refusal
}

const exportOf = (identity: Identity) => {
  const machine = { ...createMachine(MAC, 'ipxe-exit', NOW), ...identity }
  const row = renderMachineCsv({ machine, serial: '=1', image: 'a,b', state: 'ready' })
  return `${MACHINES_CSV_HEAD}${row}`
}

const part = fc.constantFrom('rack', 'Rack', 'slot', '-', '3', ' ', 'a', '.', '_', 'lab')
const label = fc
  .array(part, { minLength: 1, maxLength: 6 })
  .map((parts) => parts.join(''))
  .filter((text) => LabelSchema.safeParse(text).success)
const name = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 20 }),
    fc.string({ unit: fc.constantFrom("'", '=', '"', ',', ' ', 'a', '👩\u200d💻'), maxLength: 8 }),
  )
  .filter((text) => NameSchema.safeParse(text).success)
  .map((text) => NameSchema.parse(text) || null)

test('what the export writes changes nothing, whatever machines are called', () => {
  fc.assert(
    fc.property(name, fc.array(label, { maxLength: 6 }), (called, labels) => {
      const identity = { name: called, labels: sortLabels(labels) }
      const [line] = plan(exportOf(identity), { [MAC]: identity })
      assert.is(line?.is, 'same', JSON.stringify([identity, line]))
    }),
  )
})

test('what the export writes makes the same of a machine that is called otherwise', () => {
  const identity = { name: "'=a", labels: ['Rack-4', 'lab', 'rack-3', 'rack-rack-5', 'slot-12'] }
  assert.match(
    exportOf(identity),
    /,lab,"?Rack-4, 3, rack-rack-5"?,12,"'=1","a,b",,ipxe-exit,ready/,
  )
  const [line] = plan(exportOf(identity), { [MAC]: { name: 'x', labels: ['old', 'rack-1'] } })
  assert.equal(line?.is === 'changed' ? line.after : line, identity)
})

test('what has no column stays, and an empty cell takes away', () => {
  const before = { name: 'one', labels: ['lab', 'rack-1', 'slot-2'] }
  const rows = [
    [{ rack: '7' }, 'one', ['lab', 'rack-7', 'slot-2']],
    [{ rack: '' }, 'one', ['lab', 'slot-2']],
    [{ slot: 'slot-3' }, 'one', ['lab', 'rack-1', 'slot-3']],
    [{ labels: 'new, more' }, 'one', ['more', 'new', 'rack-1', 'slot-2']],
    [{ labels: 'rack-9' }, 'one', ['rack-9', 'slot-2']],
    [{ labels: '' }, 'one', ['rack-1', 'slot-2']],
    [{ labels: 'rack-9', rack: '9' }, 'one', ['rack-9', 'slot-2']],
    [{ labels: 'rack-9', rack: '' }, 'one', ['rack-9', 'slot-2']],
    [{ name: ' two ' }, 'two', ['lab', 'rack-1', 'slot-2']],
    [{ name: '' }, null, ['lab', 'rack-1', 'slot-2']],
  ] as const
  for (const [cells, called, labels] of rows) {
    const made = applyIdentity(before, cells)
    assert.equal(made.ok ? made.value : made, { name: called, labels }, JSON.stringify(cells))
  }
})

test('each line says what it does, or why not', () => {
  const fleet = {
    [MAC]: { name: 'one', labels: [] },
    '52:54:00:00:00:02': { name: 'two', labels: [] },
  }
  const lines = plan(
    [
      'Serial;LABEL;Name;MAC',
      'S1;lab;eins;5254.0000.0001',
      'S2;;two;52-54-00-00-00-02',
      'S3;;x;52:54:00:00:00:03',
      'S4;;x;nothing',
      'S5;;x;525400000004',
      'S6;;y;52:54:00:00:00:04',
    ].join('\r\n'),
    fleet,
  )
  assert.equal(
    lines.map(({ line, is }) => [line, is]),
    [
      [2, 'changed'],
      [3, 'same'],
      [4, 'unknown'],
      [5, 'refused'],
      [6, 'twice'],
      [7, 'twice'],
    ],
  )
  const reasonOf = (row: string, columns = 'mac,name,labels,rack') => {
    const [line] = plan(`${columns}\n${MAC},${row}`, fleet)
    return line?.is === 'refused' ? line.reason : String(line?.is)
  }
  assert.match(reasonOf(`${'x'.repeat(65)},,`), /^A name has at most 64 characters, not 65\.$/)
  assert.match(reasonOf('x,Büro,'), /^A label cannot hold "ü"/)
  assert.match(reasonOf('B\ufffdro,,'), /UTF-8/)
  assert.match(reasonOf(',rack-1,2'), /labels name rack-1, the column rack names rack-2/)
  assert.match(
    reasonOf(`x,"${Array.from({ length: 17 }, (_, at) => `l${at}`).join()}",`),
    /at most 16/,
  )
  assert.match(reasonOf('Web server, left,blue,1'), /^This line has 5 cells, .* names 4 columns/)
  assert.match(reasonOf('x'), /^This line has 2 cells, .* names 4 columns/)
  assert.is(reasonOf('x,,,,'), 'changed')
  // A formula of a spreadsheet is a text again.
  assert.is(plan(`mac,name\n${MAC},'=1+1`, fleet)[0]?.is, 'changed')
})

test('a rack that a spreadsheet made a date of is said to be such, and a name in another encoding', () => {
  const before = { name: 'Büro Süd', labels: ['rack-4-Jan'] }
  const decide = (columns: string, row: string) => {
    const [line] = plan(`mac,${columns}\n${MAC},${row}`, { [MAC]: before })
    return line?.is === 'refused' ? line.reason : String(line?.is)
  }
  for (const date of ['4-Feb', '04. Jan', '4. Mrz', '04-janv', '1/avr', '04-Jan-2026', 'Jan-32']) {
    assert.match(decide('rack', date), `turned the rack into the date "${date}"`)
  }
  for (const date of ['01.04.2026', '4/1/2026', '2026-04-01', '4/1/26']) {
    assert.match(decide('slot', date), `turned the slot into the date "${date}"`)
  }
  for (const rack of ['1-4', '1-2-3', '1.2.12', 'A-12', 'May', '12-left', 'set-12', '4-Jan-x']) {
    assert.is(decide('rack', rack), 'changed', rack)
  }
  assert.is(decide('rack', '4-Jan'), 'same', 'a rack that is called so')
  assert.is(decide('name', '4-Feb'), 'changed')
  assert.match(decide('name', 'BÃ¼ro SÃ¼d'), /another encoding/)
  assert.is(decide('name', 'BÃ¼ro'), 'changed')
})

test('a file as a whole is refused in a sentence', () => {
  assert.match(String(refusalOf('')), /Choose a file/)
  assert.match(String(refusalOf('name,labels\na,b')), /must name the column "mac"/)
  assert.match(String(refusalOf('mac,serial\na,b')), /must name at least one of name/)
  assert.match(String(refusalOf('mac,label,Labels\na,b')), /names the column labels twice/)
  assert.match(String(refusalOf('m\0a\0c\0')), /Line 1 holds bytes that are not text/)
  assert.match(String(refusalOf('mac,name\na,"b')), /Line 2: .*quotation mark/)
  assert.match(String(refusalOf(`mac${',x'.repeat(1_000_000)}`)), /more than 100 columns/)
  assert.match(String(refusalOf('mac,name\n'.repeat(1_000_000))), /more than 20000 lines/)
  assert.match(
    String(refusalOf(`mac,name\n${'"'.repeat(10_000_000)}`)),
    /more than 10000 characters/,
  )
})

test('the action changes name and labels alone, and only what is as it was', () => {
  const machine = { ...createMachine(MAC, 'ipxe-exit', NOW), name: 'one', labels: ['lab'] }
  const before = { name: 'one', labels: ['lab'] }
  const later = '2026-11-27T09:00:00.000Z'
  const made = ACTIONS.name.apply(machine, { name: '', labels: ['b', 'a'], before }, later)
  assert.ok(made.ok)
  assert.equal(made.value, { ...machine, name: null, labels: ['a', 'b'], updated_at: later })
  for (const other of [
    { ...machine, name: 'two' },
    { ...machine, labels: ['lab', 'x'] },
  ]) {
    const refused = ACTIONS.name.apply(other, { name: 'new', before }, later)
    assert.match(refused.ok ? '' : refused.refusal, /changed in the meantime/)
  }
  assert.is(ACTIONS.name.check({ name: 'x' }, 1), null)
  assert.ok(ACTIONS.name.check({ name: 'x' }, 2))
  assert.is(ACTIONS.name.check({ labels: ['x'] }, 2), null)
})

test('two machines that would have one name are named, whichever had it first', () => {
  const [one, two, three] = ['01', '02', '03'].map((end) => asMac(`52:54:00:00:00:${end}`))
  assert.ok(one !== undefined && two !== undefined && three !== undefined)
  const fleet = [
    { mac: one, name: 'a', labels: [] },
    { mac: two, name: 'b', labels: [] },
    { mac: three, name: null, labels: [] },
  ]
  const twinsOf = (rows: string) => {
    const file = parseMachineFile(`mac,name\n${rows}`)
    assert.ok(file.ok)
    const find = (mac: string) => fleet.find((each) => each.mac === mac) ?? null
    return [...findTwins(file.value.rows.map(createLinePlanner(file.value, find)), fleet)]
  }
  assert.equal(twinsOf(`${three},B\n`), [[three, two]])
  assert.equal(twinsOf(`${three},b\n${two},c\n`), [])
  assert.equal(twinsOf(`${three},x\n${two},X\n`), [
    [three, two],
    [two, three],
  ])
  assert.equal(twinsOf(`${one},\n${two},\n`), [])
})

test.run()
