import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { displayWidth } from '../../../runtime/core/foundation/printable.ts'
import { clip } from '../../../runtime/terminal/text/clip.ts'
import { layOut } from '../../../runtime/terminal/text/columns.ts'

const test = suite('columns')

test('texts are cut at the end or in the middle, by columns and not by characters', () => {
  assert.is(clip('abcdefgh', 8, { cut: 'end', unicode: true }), 'abcdefgh')
  assert.is(clip('abcdefgh', 5, { cut: 'end', unicode: true }), 'abcd…')
  assert.is(clip('abcdefgh', 5, { cut: 'end', unicode: false }), 'abc..')
  assert.is(clip('abcdefgh', 5, { cut: 'middle', unicode: true }), 'ab…gh')
  assert.is(clip('日本語のイメージ', 7, { cut: 'end', unicode: true }), '日本語…')
  assert.is(clip('waiting…', 20, { cut: 'end', unicode: false }), 'waiting...')
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), fc.nat(40), (text, width) => {
      for (const cut of ['end', 'middle'] as const) {
        assert.ok(displayWidth(clip(text, width, { cut, unicode: true })) <= Math.max(width, 0))
      }
    }),
  )
})
test('columns are as wide as needed, shrink as they may, and then go, the least important first', () => {
  const columns = [
    { title: 'Name', least: 6, cut: 'middle' as const },
    { title: 'Size', side: 'right' as const },
    { title: 'Arch', drops: 2 },
    { title: 'From', drops: 1 },
  ]
  const rows = [
    ['debian-13-amd64.img', '9 MB', 'x86_64', 'local'],
    ['a.img', '900 MB', '', 'remote'],
  ]
  const lay = (width: number) => layOut(columns, rows, width, false)
  assert.equal(lay(80), {
    head: 'Name                   Size  Arch    From',
    rule: '-------------------  ------  ------  ------',
    lines: [
      'debian-13-amd64.img    9 MB  x86_64  local',
      'a.img                900 MB          remote',
    ],
  })
  assert.equal(lay(34).lines, [
    'debi...img    9 MB  x86_64  local',
    'a.img       900 MB          remote',
  ])
  assert.not.match(lay(24).head, /Arch/)
  assert.equal(lay(14).head, 'Name      Size')
})
test('a column in which nothing is said is left out', () => {
  const columns = [{ title: 'Name' }, { title: 'SHA-256' }]
  assert.is(
    layOut(
      columns,
      [
        ['a', ''],
        ['b', ''],
      ],
      80,
      false,
    ).head,
    'Name',
  )
})
test('no line is wider than the terminal, as long as there is room for the least', () => {
  const columns = [
    { title: 'Name', least: 4 },
    { title: 'On it', least: 4, drops: 1 },
  ]
  const cells = fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 5 })
  fc.assert(
    fc.property(cells, fc.integer({ min: 4, max: 60 }), (rows, width) => {
      const { head, lines } = layOut(columns, rows, width, true)
      for (const line of [head, ...lines]) assert.ok(displayWidth(line) <= width, line)
    }),
  )
})
test.run()
