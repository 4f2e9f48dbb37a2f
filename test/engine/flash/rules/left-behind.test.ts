import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideLeftBehind,
  type FedDisk,
} from '../../../../runtime/engine/flash/rules/left-behind.ts'
import { canBeEnteredAgain } from '../../../../runtime/engine/image/rules/entry.ts'

const test = suite('disks that are left behind')
const MIB = 1 << 20
const disk = (backlog: number, rate: number | null): FedDisk => ({
  backlog,
  rate: rate === null ? null : rate * MIB,
})

test('a disk that holds the buffer at less than half of the speed of one that waits', () => {
  const rows: readonly (readonly [readonly FedDisk[], readonly number[]])[] = [
    [[disk(0, 400), disk(24, 199)], [1]],
    // A little slower: the others gain little by leaving it.
    [[disk(0, 400), disk(24, 201)], []],
    // Nobody waits.
    [[disk(1, 400), disk(24, 10)], []],
    // It is as slow, but it is not what holds the buffer.
    [[disk(0, 400), disk(11, 100), disk(24, 100)], [2]],
    [
      [disk(0, 400), disk(12, 100), disk(24, 100)],
      [1, 2],
    ],
    // One that has written nothing yet, or hangs.
    [[disk(0, 400), disk(24, null)], [1]],
    [[disk(0, 400), disk(24, 0)], [1]],
    // One that waits has written all that there was, even where that says little of its speed.
    [[disk(0, null), disk(24, 100)], [1]],
    [[disk(0, 400)], []],
    [[], []],
  ]
  for (const [disks, expected] of rows) assert.equal(decideLeftBehind(disks), expected)
})

test('never one that waits, and therefore never all of them', () => {
  const rate = fc.option(fc.double({ min: 0, max: 1e10, noNaN: true }))
  const fed = fc.record({ backlog: fc.nat(24), rate })
  fc.assert(
    fc.property(fc.array(fed, { maxLength: 9 }), (disks) => {
      const left = decideLeftBehind(disks)
      assert.ok(left.every((index) => (disks[index]?.backlog ?? 0) > 0))
      assert.ok(disks.length === 0 || left.length < disks.length)
    }),
  )
})

test('what can be entered anywhere: frames, and raw images that have no digest', () => {
  const raw = { format: 'img', isSeekable: true, hasFrames: false, sha256: null } as const
  const frames = { ...raw, format: 'img.zst', hasFrames: true } as const
  const digest = 'a'.repeat(64)
  assert.ok(canBeEnteredAgain(raw))
  assert.ok(canBeEnteredAgain(frames))
  assert.ok(canBeEnteredAgain({ ...frames, sha256: digest }))
  assert.not.ok(canBeEnteredAgain({ ...raw, sha256: digest }))
  assert.not.ok(canBeEnteredAgain({ ...raw, isSeekable: false }))
  assert.not.ok(canBeEnteredAgain({ ...frames, hasFrames: false }))
  assert.not.ok(canBeEnteredAgain({ ...raw, format: 'qcow2' }))
})
test.run()
