/** Lists of ranges against a disk of single bytes: union, mirrors, and what is joined. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addMirrors, parseChunks } from '#engine/capture/rules/mirrors.ts'
import {
  addUnion,
  createRangeList,
  listRanges,
  type RangeList,
} from '#engine/capture/rules/range-list.ts'

const test = suite('range lists')

const ranges = fc
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
    fc.property(ranges, ranges, fc.nat(9), (one, two, offset) => {
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
    fc.property(ranges, (all) => {
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
test.run()
