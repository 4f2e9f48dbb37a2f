/** Maps of used blocks: what partclone writes is read, and everything else is refused. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDomainParser, type RangeList } from '#engine/capture/rules/range-list.ts'

const test = suite('domain maps')

const HEAD = ['# Domain logfile created by unset_name v0.3.23', '0x00100000     ?', '#      pos']

function parse(lines: readonly string[], bytes: number) {
  const parser = createDomainParser(bytes)
  for (const line of lines) if (!parser.take(line)) break
  const ended = parser.end()
  return ended.ok ? list(ended.value) : ended.refusal
}

const list = (ranges: RangeList) =>
  Array.from({ length: ranges.count }, (_, index) => {
    const { offset, bytes } = ranges.at(index)
    return [offset, bytes]
  })

test("partclone's own", () => {
  const map = [...HEAD, '0x00000000  0x00001000  +', '0x00001000  0x000FF000  ?', '']
  assert.equal(parse(map, 0x100000), [[0, 0x1000]])
  // What lies behind the file system is not known to be free.
  assert.equal(parse(map, 0x100200), [
    [0, 0x1000],
    [0x100000, 0x200],
  ])
})

const isWhole = (bytes: number, ...pieces: readonly string[]) => {
  const parser = createDomainParser(bytes)
  for (const line of [...HEAD, ...pieces]) parser.take(line)
  return parser.isWhole()
}

test('it is whole where it reaches the end of the partition, not before, and not where it is wrong', () => {
  assert.is(isWhole(0x2000), false)
  assert.is(isWhole(0x2000, '0x0 0x1000 +'), false)
  assert.is(isWhole(0x2000, '0x0 0x1000 +', '0x1000 0x1000 ?'), true)
  assert.is(isWhole(0x2200, '0x0 0x1000 +', '0x1000 0x1000 ?'), false)
  assert.is(isWhole(0x2000, '0x0 0x1000 +', '0x1000 0x1000 ?', '0x2000 0x1000 +'), false)
})

const HOSTILE = [
  ['nothing', [], 'empty'],
  ['no used block', [...HEAD, '0x0  0x100000  ?'], 'empty'],
  ['no status line', ['0x0  0x1000  +'], 'not-a-map'],
  ['other words', ['Cloned successfully.'], 'not-a-map'],
  ['a gap', [...HEAD, '0x0 0x1000 +', '0x2000 0x1000 +'], 'not-in-order'],
  ['an overlap', [...HEAD, '0x0 0x2000 +', '0x1000 0x1000 +'], 'not-in-order'],
  ['another beginning', [...HEAD, '0x1000 0x1000 +'], 'not-in-order'],
  ['an empty piece', [...HEAD, '0x0 0x0 +'], 'not-in-order'],
  ['a piece beyond the end', [...HEAD, '0x0 0x100001 +'], 'outside'],
  ['a size of 2^63', [...HEAD, '0x0 0x8000000000000000 +'], 'not-a-map'],
  ['a size of 2^55', [...HEAD, '0x0 0x80000000000000 +'], 'outside'],
  ['a negative size', [...HEAD, '0x0 -0x1000 +'], 'not-a-map'],
  ['another state', [...HEAD, '0x0 0x1000 -'], 'not-a-map'],
  ['decimal numbers', [...HEAD, '0 4096 +'], 'not-a-map'],
] as const

for (const [what, lines, refusal] of HOSTILE) {
  test(`${what}: refused`, () => assert.is(parse(lines, 0x100000), refusal))
}

test('every map that is accepted names ranges in order and inside of the partition', () => {
  const piece = fc.tuple(fc.integer({ min: 0, max: 40 }), fc.constantFrom('+', '?'), fc.integer())
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }),
      fc.integer({ min: 1, max: 200 }),
      (all, size) => {
        let at = 0
        const lines = all.map(([bytes, state, odd]) => {
          const offset = odd % 17 === 0 ? Math.abs(odd % 100) : at
          at = offset + bytes
          return `0x${offset.toString(16)} 0x${bytes.toString(16)} ${state}`
        })
        const parsed = parse([...HEAD, ...lines], size)
        if (typeof parsed === 'string') return
        let end = -1
        for (const [offset = 0, bytes = 0] of parsed) {
          assert.ok(offset > end && bytes > 0 && offset + bytes <= size)
          end = offset + bytes
        }
      },
    ),
  )
})
test.run()
