import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderRecord, renderTable } from '#kit/terminal/text/columns.ts'

const test = suite('tables and records')

test('header in capitals, dashes, two blanks between, no trailing blanks', () => {
  const rows = [
    { path: '/dev/sda', size: '500G', serial: null, removable: false },
    { path: '/dev/nvme0n1', size: '1T', serial: 'S5GX', removable: true },
  ]
  assert.is(
    renderTable(rows, ['path', 'size', 'serial', 'removable']),
    [
      'PATH          SIZE  SERIAL  REMOVABLE',
      '------------  ----  ------  ---------',
      '/dev/sda      500G          no',
      '/dev/nvme0n1  1T    S5GX    yes',
      '',
    ].join('\n'),
  )
})
test('a table is as narrow as its terminal; what tells the rows apart is shortened last', () => {
  const columns = [
    { key: 'name', least: 8, cut: 'middle', tells: true },
    { key: 'model', least: 6, drops: 1 },
    { key: 'bus', drops: 2 },
  ] as const
  const rows = [
    { name: 'debian-13-a.img', model: 'Samsung SSD 980', bus: 'nvme' },
    { name: 'debian-13-b.img', model: 'Samsung SSD 990', bus: 'nvme' },
  ]
  const lay = (width: number | null) =>
    renderTable(rows, columns, { width, unicode: true }).trimEnd().split('\n')
  assert.is(lay(null)[2], 'debian-13-a.img  Samsung SSD 980  nvme')
  assert.is(lay(30)[2], 'debian-13-a.img  Samsun…  nvme')
  assert.is(lay(24)[2], 'debian-13-a.img  Samsun…')
  for (const width of [5, 13, 24, 30]) {
    for (const line of lay(width)) assert.ok(line.length <= width, line)
  }
})
test('no rows say so', () => {
  assert.is(renderTable([], ['name']), '(no entries)\n')
})
test('a missing column is empty, an unknown one is not shown', () => {
  assert.is(renderTable([{ a: 1, b: 2 }], ['a', 'c']), 'A  C\n-  -\n1\n')
})
test('a hostile name stays on its line', () => {
  assert.is(
    renderTable([{ model: '\u001b[2J\nx' }], ['model']),
    `MODEL\n${'-'.repeat(12)}\n${String.raw`\x1b[2J\x0ax`}\n`,
  )
})
test('wide characters keep the columns', () => {
  const [, , one = '', two = ''] = renderTable(
    [
      { name: '磁盘', format: 'img' },
      { name: 'disk', format: 'img' },
    ],
    ['name', 'format'],
  ).split('\n')
  assert.is(one, '磁盘  img')
  assert.is(two, 'disk  img')
})
test('a record is an outline', () => {
  assert.is(
    renderRecord({
      path: 'a.qcow2',
      format: null,
      detail: { 'virtual-size': 512, data: { compat: '1.1', list: [1] }, none: {} },
      text: 'one\ntwo\u0007',
    }),
    [
      'path: a.qcow2',
      'format:',
      'detail:',
      '  virtual-size: 512',
      '  data:',
      '    compat: 1.1',
      '    list: [1]',
      '  none: (none)',
      'text:',
      '  one',
      String.raw`  two\x07`,
      '',
    ].join('\n'),
  )
})
test('whatever a tool said, it is lines without control characters', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue({ maxDepth: 12 })), (record) => {
      assert.not.match(renderRecord(record).replaceAll('\n', ''), /\p{Cc}/u)
    }),
  )
})
test.run()
