/** Ten small file systems that have lived are captured, and no file of them is lost; `pnpm bench:capture` makes hundreds. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  planLife,
  renderLife,
  type Life,
  type LivedKind,
} from '#test/support/capture/lived/life.ts'
import { roundTrip } from '#test/support/capture/lived/round-trip.ts'

const test = suite('captured file systems that have lived')

const small = (seed: number, kind: LivedKind): Life => planLife(seed, { kind, maxEvents: 12 })

/** Snapshots of a tree that is then rewritten by a balance: partclone calls blocks of theirs free. */
const BALANCED: Life = {
  ...small(1, 'btrfs'),
  mkfs: [],
  megabytes: 400,
  files: 300,
  events: [1, 2, 4].flatMap((number) => [
    { does: 'snapshot', number },
    { does: 'write-many', number },
    { does: 'balance', number: 0 },
  ]),
}

/** To the last cluster, which partclone calls free. */
const FULL: Life = { ...small(1, 'exfat'), events: [{ does: 'fill', number: 4 }] }

const LIVES: readonly Life[] = [
  BALANCED,
  small(2, 'btrfs'),
  small(3, 'btrfs'),
  small(4, 'ext4'),
  small(5, 'ext4'),
  small(6, 'xfs'),
  { ...small(7, 'vfat'), mkfs: ['-F', '12', '-s', '64'] },
  { ...small(8, 'vfat'), mkfs: ['-F', '32', '-s', '1'] },
  FULL,
  small(9, 'ntfs'),
]

for (const [index, life] of LIVES.entries()) {
  test(`${index + 1}: ${renderLife(life)}`, async () => {
    const { lost, files, isDamaged } = await roundTrip(life)
    assert.ok(files > 10, String(files))
    assert.equal(lost, [])
    assert.not(isDamaged)
  })
}

test.run()
