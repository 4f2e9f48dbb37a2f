/** Lists of ranges against a disk of single bytes: union, mirrors, and what is joined. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addMirrors, parseChunks } from '#engine/capture/rules/second-reading.ts'
import {
  addUnion,
  createDomainParser,
  createRangeList,
  listRanges,
  type RangeList,
} from '#engine/capture/rules/range-list.ts'

const test = suite('range lists')

const anyRanges = fc
  .array(fc.record({ offset: fc.nat(60), bytes: fc.integer({ min: 1, max: 12 }) }), {
    maxLength: 20,
  })
  .map((all) => all.toSorted((one, two) => one.offset - two.offset))

const bytesOf = (list: RangeList) => {
  const found = new Set<number>()
  let end = -1
  for (let index = 0; index < list.count; index += 1) {
    const { offset, bytes } = list.at(index)
    assert.ok(offset > end, 'in order, and never touching')
    end = offset + bytes
    for (let at = offset; at < end; at += 1) found.add(at)
  }
  assert.is(list.totalBytes, found.size)
  return found
}

test('the union holds what either holds', () => {
  fc.assert(
    fc.property(anyRanges, anyRanges, fc.nat(9), (one, two, offset) => {
      const into = createRangeList()
      addUnion(into, listRanges(one), listRanges(two), offset)
      const expected = [...bytesOf(listRanges(one)).union(bytesOf(listRanges(two)))]
      assert.equal(
        [...bytesOf(into)],
        expected.map((at) => at + offset).toSorted((a, b) => a - b),
      )
    }),
  )
})

test('of two copies, what is used of one is used of the other', () => {
  fc.assert(
    fc.property(anyRanges, (all) => {
      const used = listRanges(all)
      const before = bytesOf(used)
      const mirror = { bytes: 10, offsets: [20, 50] } as const
      const after = bytesOf(addMirrors(used, [mirror]))
      for (let at = 0; at < 10; at += 1) {
        const isUsed = before.has(20 + at) || before.has(50 + at)
        assert.equal([after.has(20 + at), after.has(50 + at)], [isUsed, isUsed])
      }
      const outside = [...before].filter((at) => !after.has(at))
      assert.equal(outside, [])
    }),
  )
})

const chunk = (type: string, stripes: number) => `\
	item 2 key (FIRST_CHUNK_TREE CHUNK_ITEM 22020096) itemoff 15993 itemsize 112
		length 8388608 owner 2 stripe_len 65536 type ${type}
		io_align 65536 io_width 65536 sector_size 4096
		num_stripes ${stripes} sub_stripes 1
${Array.from({ length: stripes }, (_, at) => `\t\t\tstripe ${at} devid 1 offset ${1000 + at}\n\t\t\tdev_uuid 64e2b4d0\n`).join('')}`

test("btrfs's chunks: copies on one device are found, and what lies on several is refused", () => {
  assert.equal(parseChunks(`${chunk('DATA|single', 1)}${chunk('METADATA|DUP', 2)}`), {
    ok: true,
    value: [
      { logical: 22_020_096, bytes: 8_388_608, offsets: [1000] },
      { logical: 22_020_096, bytes: 8_388_608, offsets: [1000, 1001] },
    ],
  })
  assert.not(parseChunks(chunk('DATA|RAID1', 2)).ok)
  assert.not(parseChunks(chunk('DATA|DUP', 3)).ok)
  assert.not(parseChunks('').ok)
})

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
