import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { displayWidth } from '#kit/foundation/printable.ts'
import { clip, clipApart, layOut } from '#kit/terminal/text/columns.ts'

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
test('texts that would look the same once they are cut stay different', () => {
  const images = ['debian-13-20250101-amd64.img.zst', 'debian-13-20250102-amd64.img.zst', 'a.img']
  const style = { cut: 'middle', unicode: true } as const
  assert.equal(clipApart(images, 20, style), [
    'debia…50101-amd64.i…',
    'debia…50102-amd64.i…',
    'a.img',
  ])
  assert.equal(clipApart(images, 60, style), images)
  const text = fc.string({ unit: 'grapheme', maxLength: 30 })
  fc.assert(
    fc.property(fc.array(text), fc.integer({ min: 0, max: 20 }), (texts, width) => {
      for (const cut of clipApart(texts, width, style)) assert.ok(displayWidth(cut) <= width, cut)
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
test('what tells the rows apart is shortened last, when the rest has shrunk or gone', () => {
  const columns = [
    { title: 'Name', least: 6, cut: 'middle' as const, tells: true },
    { title: 'Arch', drops: 2 },
    { title: 'From', drops: 1 },
  ]
  const rows = [['debian-13-amd64.img', 'x86_64', 'local']]
  const lay = (width: number) => layOut(columns, rows, width, false).lines
  assert.equal(lay(30), ['debian-13-amd64.img  local'])
  assert.equal(lay(20), ['debian-13-amd64.img'])
  assert.equal(lay(12), ['debia..4.img'])
  assert.equal(lay(5), ['de...'])
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
