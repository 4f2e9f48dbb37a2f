/** Which last partitions fill a disk, and the tables that say so. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseGptPartitions, parseTable } from '#engine/disk/rules/partition-tables.ts'
import {
  type GrowthDisk,
  MARK_BYTES,
  planLastGrowth,
  planMarks,
} from '#engine/flash/rules/last-partition.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'

const test = suite('planLastGrowth')
const MIB = 1 << 20

const disk = (sizeBytes: number, sectorBytes = 512): GrowthDisk => ({
  sizeBytes,
  sectorBytes,
  // A head so short that the test image's partition, right behind its table, lies behind it.
  headBytes: 34 * 512,
  tailStart: sizeBytes - MIB,
})

for (const sectorBytes of [512, 4096] as const) {
  test(`a GPT for sectors of ${sectorBytes}`, () => {
    const image = makeDiskImage(5 * MIB, { sectorBytes })
    const planned = planLastGrowth(image.subarray(0, MIB), {
      ...disk(64 * MIB, sectorBytes),
      headBytes: 4096,
    })
    assert.ok(planned.ok)
    const { partition, head, moved, grows } = planned.value
    assert.ok(grows)
    assert.is(partition.offset + partition.bytes, 63 * MIB)
    const table = parseTable(head, sectorBytes)
    assert.ok(table !== null)
    assert.is(parseGptPartitions(table)[0]?.lastSector, (63 * MIB) / sectorBytes - 1)
    assert.is(moved?.offset, 64 * MIB - sectorBytes - 16 * 1024)
  })
}

test('nothing grows into the last MiB, nor shrinks', () => {
  const image = makeDiskImage(5 * MIB)
  for (const more of [0, 512, MIB]) {
    const planned = planLastGrowth(image.subarray(0, MIB), disk(5 * MIB + more))
    assert.ok(planned.ok)
    assert.is(planned.value.grows, more === MIB)
    const end = planned.value.partition.offset + planned.value.partition.bytes
    assert.is(end, more === MIB ? 5 * MIB : 5 * MIB - 33 * 512)
  }
})

/** An MBR with these entries of type, first sector and number of sectors. */
function makeDos(entries: readonly (readonly [number, number, number])[]): Buffer {
  const head = Buffer.alloc(MIB)
  head.writeUInt16LE(0xaa55, 510)
  for (const [at, [type, first, sectors]] of entries.entries()) {
    head.writeUInt8(type, 446 + 16 * at + 4)
    head.writeUInt32LE(first, 446 + 16 * at + 8)
    head.writeUInt32LE(sectors, 446 + 16 * at + 12)
  }
  return head
}

test('an MBR, as far as 32 bits reach', () => {
  const head = makeDos([
    [0x83, 8192, 2048],
    [0x0c, 2048, 2048],
  ])
  const planned = planLastGrowth(head, disk(64 * MIB))
  assert.ok(planned.ok)
  assert.equal(planned.value.partition, { number: 1, offset: 4 * MIB, bytes: 59 * MIB })
  assert.is(planned.value.moved, null)
  assert.is(planned.value.head.readUInt32LE(446 + 12), 59 * 2048)
  const large = planLastGrowth(head, disk(8 * 1024 ** 4))
  assert.is(large.ok && large.value.head.readUInt32LE(446 + 12), 0xffff_ffff)
})

const REFUSED = [
  ['no-table', Buffer.alloc(MIB)],
  ['no-table', makeDos([[0xee, 1, 4096]])],
  [
    'overlapping',
    makeDos([
      [0x83, 2048, 9000],
      [0x83, 4096, 100],
    ]),
  ],
  [
    'logical',
    makeDos([
      [0x83, 2048, 2048],
      [0x05, 4096, 4096],
    ]),
  ],
  [
    'swap',
    makeDos([
      [0x83, 2048, 2048],
      [0x82, 4096, 4096],
    ]),
  ],
  ['lvm', makeDos([[0x8e, 2048, 2048]])],
  ['fat', makeDos([[0x0b, 2048, 2048]])],
  ['begins-early', makeDos([[0x83, 33, 2048]])],
  ['damaged-table', makeDos([[0x83, 2048, 0]])],
] as const

for (const [why, head] of REFUSED) {
  test(`refused: ${why}`, () => {
    assert.equal(planLastGrowth(head, disk(64 * MIB)), { ok: false, refusal: why })
  })
}

test('a damaged GPT is refused', () => {
  const image = makeDiskImage(5 * MIB)
  image.writeUInt8(1, 600)
  const planned = planLastGrowth(image.subarray(0, MIB), disk(64 * MIB))
  assert.equal(planned, { ok: false, refusal: 'damaged-table' })
})

const GIB = 1024 * MIB

test('only at the very end where nothing grows, and nowhere on a disk without a body', () => {
  const sizes = { sizeBytes: 200 * MIB, imageEnd: 90 * MIB, grownEnd: null }
  assert.equal(planMarks(sizes), [200 * MIB - MARK_BYTES])
  assert.equal(planMarks({ ...sizes, sizeBytes: MIB }), [])
})

test('behind the image where a partition grows, and few of them', () => {
  const sizes = { sizeBytes: 200 * MIB, imageEnd: 90 * MIB - 5, grownEnd: 199 * MIB }
  assert.equal(planMarks(sizes), [90 * MIB, 180 * MIB, 200 * MIB - MARK_BYTES])
  for (const imageEnd of [8 * MIB, GIB]) {
    const places = planMarks({ sizeBytes: 1024 * GIB, imageEnd, grownEnd: 1023 * GIB })
    assert.ok(places.length < 1000, String(places.length))
    assert.ok(places.every((at) => at >= imageEnd && at <= 1024 * GIB - MARK_BYTES))
  }
})

test('one of them falls into the image, wherever the disk begins anew', () => {
  const [sizeBytes, imageEnd] = [40 * GIB, 700 * MIB]
  const places = planMarks({ sizeBytes, imageEnd, grownEnd: sizeBytes - MIB })
  for (let real = imageEnd + MIB; real < sizeBytes; real += 97 * MIB) {
    const isFound = places.some((at) => at >= real && at % real < imageEnd)
    assert.ok(isFound, `a real size of ${real}`)
  }
})

test.run()
