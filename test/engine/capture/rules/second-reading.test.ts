/** A second look at a map of used blocks: what it finds, and that nothing a disk says makes it throw, or go on for ever. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  createUnitCheck,
  type Looked,
  type SecondReading,
  walkBtrfs,
} from '#engine/capture/rules/second-reading.ts'
import {
  judgeNtfs,
  walkExfat,
  walkExt,
  walkFat,
  walkXfs,
} from '#engine/capture/rules/used-blocks.ts'
import { countWithin, listRanges } from '#engine/capture/rules/range-list.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'

const test = suite('second looks')
const MIB = 1 << 20

/** Answers from a disk's bytes; what lies outside of it ends the look, as in the program. */
function answer(look: SecondReading, disk: Buffer): string | null {
  let step = look.next([])
  for (let asked = 0; step.done !== true; asked += 1) {
    assert.ok(asked < 5000, 'it goes on for ever')
    const isInside = step.value.every(({ offset, bytes }) => offset + bytes <= disk.length)
    if (!isInside) return 'outside'
    step = look.next(step.value.map(({ offset, bytes }) => disk.subarray(offset, offset + bytes)))
  }
  return step.value
}

/** A FAT16 of 8,000 clusters of 512 bytes, with the entries of these used. */
function makeFat16(used: readonly number[]): Buffer {
  const disk = Buffer.alloc(5 * MIB)
  disk.writeUInt16LE(512, 11)
  disk.writeUInt8(1, 13)
  disk.writeUInt16LE(1, 14)
  disk.writeUInt8(1, 16)
  disk.writeUInt16LE(16, 17)
  disk.writeUInt16LE(1 + 32 + 1 + 8000, 19)
  disk.writeUInt16LE(32, 22)
  for (const cluster of used) disk.writeUInt16LE(0xffff, 512 + cluster * 2)
  return disk
}

const HEAP = (1 + 32 + 1) * 512
const lookAt = (disk: Buffer, used: readonly { offset: number; bytes: number }[]): Looked => ({
  first: disk.subarray(0, 128 * 1024),
  bytes: disk.length,
  used: listRanges(used),
  chunks: [],
})

test('FAT: only a map that calls a used cluster free is not believed', () => {
  const disk = makeFat16([2, 3, 4, 100, 8001])
  const before = [{ offset: 0, bytes: HEAP + 3 * 512 }]
  const hundredth = { offset: HEAP + 98 * 512, bytes: 512 }
  const last = { offset: HEAP + 7999 * 512, bytes: 512 }
  const judge = (more: typeof before) => answer(walkFat(lookAt(disk, [...before, ...more])), disk)
  assert.is(judge([hundredth, last]), null)
  assert.is(judge([{ ...hundredth, bytes: 4096 }, last]), null)
  assert.is(judge([{ offset: hundredth.offset, bytes: 6000 * 512 }, last]), null)
  const words = 'its map calls blocks free that its table of clusters uses'
  assert.is(judge([hundredth]), words)
  assert.is(judge([{ ...hundredth, bytes: 511 }, last]), words)
  const withoutTable = lookAt(disk, [{ offset: 512, bytes: HEAP + 8000 * 512 }])
  assert.is(answer(walkFat(withoutTable), disk), words)
})

test('runs of units are asked for once each, and the last one too', () => {
  const used = listRanges([{ offset: 100, bytes: 40 }])
  const check = (units: readonly number[]) => {
    const units10 = createUnitCheck(used, { offset: 100, unitBytes: 10 })
    units.forEach((unit) => units10.take(unit))
    return units10.end()
  }
  assert.equal(
    [check([]), check([0]), check([0, 1, 3]), check([3]), check([0, 1, 2, 3])],
    [true, true, true, true, true],
  )
  assert.equal(
    [check([4]), check([0, 4]), check([4, 5, 6]), check([3, 4])],
    [false, false, false, false],
  )
})

test('what of a range is used', () => {
  const list = listRanges([
    { offset: 10, bytes: 10 },
    { offset: 30, bytes: 10 },
  ])
  const within = (offset: number, bytes: number) => countWithin(list, { offset, bytes })
  assert.equal(
    [within(0, 10), within(0, 11), within(15, 20), within(39, 9), within(40, 9)],
    [0, 1, 10, 1, 0],
  )
})

const SAID = 'ntfsresize v2022.10.3 (libntfs-3g)\nAccounting clusters ...\n'

const mismatch = (at: number, what: string) =>
  `Cluster accounting failed at ${at} (0x${at.toString(16)}): ${what} cluster in $Bitmap\n`
const total = (count: number) =>
  `Filesystem check failed! Totally ${count} cluster accounting mismatches.\n`

test('NTFS: what ntfsresize prints', () => {
  const inUse = `${SAID}Space in use       : 14 MB (13.9%)\n`
  assert.is(judgeNtfs(inUse, 13_500_000), null)
  assert.match(judgeNtfs(inUse, 13_000_000) ?? '', 'calls blocks free')
  assert.is(judgeNtfs(`${inUse}ERROR: Volume is full. To shrink it, delete`, 14_000_000), null)
  assert.is(judgeNtfs(SAID + mismatch(9000, 'extra') + total(1), 1), null)
  assert.match(judgeNtfs(SAID + mismatch(9000, 'extra') + total(2), 1) ?? '', 'cannot be checked')
  assert.match(judgeNtfs(SAID + mismatch(9000, 'missing') + total(1), 1) ?? '', 'cannot')
  assert.match(judgeNtfs('', 1) ?? '', 'cannot be checked')
})

const LOOKS = {
  walkExt,
  walkXfs,
  walkBtrfs,
  walkFat,
  walkExfat,
}

test('whatever a disk says, a look ends, and asks for what the disk has or is ended', () => {
  const noise = makeNoise(2 * MIB, 7)
  const anyEdits = fc.array(
    fc.record({
      at: fc.oneof(fc.nat(1100), fc.nat(512), fc.integer({ min: 65_536, max: 65_536 + 300 })),
      value: fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 2, 4, 9, 12, 255)),
    }),
    { maxLength: 60 },
  )
  const chunks = [{ logical: 0, bytes: 2 * MIB, offsets: [0] as const }]
  fc.assert(
    fc.property(anyEdits, fc.boolean(), (edits, isNoise) => {
      const disk = isNoise ? Buffer.from(noise) : Buffer.alloc(2 * MIB)
      edits.forEach(({ at, value }) => disk.writeUInt8(value, at))
      for (const look of Object.values(LOOKS)) {
        const said = answer(look({ ...lookAt(disk, [{ offset: 0, bytes: MIB }]), chunks }), disk)
        assert.ok(said === null || said.length > 0)
      }
    }),
    { numRuns: 300 },
  )
})
test.run()
