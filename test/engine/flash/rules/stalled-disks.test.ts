import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideStalled, type SharingDisk } from '#engine/flash/rules/writing.ts'

const test = suite('disks that hold up others')
const LIMIT_MS = 60_000
const disk = (isHolding: boolean, idleMs: number): SharingDisk => ({ isHolding, idleMs })

test('one that did nothing for too long, and holds what another one waits for', () => {
  const rows: readonly (readonly [readonly SharingDisk[], readonly number[]])[] = [
    [[disk(false, 70_000), disk(true, 60_000)], [1]],
    // It is slow, and goes on.
    [[disk(false, 70_000), disk(true, 59_999)], []],
    // It waits as well, however long.
    [[disk(false, 90_000), disk(false, 90_000)], []],
    [
      [disk(true, 90_000), disk(true, 0), disk(true, 61_000)],
      [0, 2],
    ],
    // Nobody is better off.
    [[disk(true, 90_000), disk(true, 90_000)], []],
    [[disk(true, 60_000), disk(true, 59_800)], []],
    [[disk(true, 90_000)], []],
    [[], []],
  ]
  for (const [disks, expected] of rows) assert.equal(decideStalled(disks, LIMIT_MS), expected)
})

test('never all of them', () => {
  const any = fc.record({ isHolding: fc.boolean(), idleMs: fc.nat(100_000) })
  fc.assert(
    fc.property(fc.array(any, { maxLength: 9 }), (disks) => {
      const stalled = decideStalled(disks, LIMIT_MS)
      assert.ok(disks.length === 0 || stalled.length < disks.length)
    }),
  )
})
test.run()
