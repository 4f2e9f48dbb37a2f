/** Which btrfs can grow: of one device, whatever number that has. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  detectGrowable,
  readBtrfsNumber,
  SIGNATURE_BYTES,
} from '#engine/disk/rules/file-systems.ts'

const test = suite('a btrfs that grows')

function btrfs(devices: number, own: number) {
  const first = Buffer.alloc(SIGNATURE_BYTES)
  first.write('_BHRfS_M', 0x1_0040)
  first.writeBigUInt64LE(BigInt(devices), 0x1_0088)
  first.writeBigUInt64LE(BigInt(own), 0x1_00c9)
  return first
}

test('knows the number of its device, which is not 1 where it moved', () => {
  assert.equal(detectGrowable(btrfs(1, 2)), { ok: true, value: 'btrfs' })
  assert.is(readBtrfsNumber(btrfs(1, 2)), 2)
})

test('is refused where it has several devices', () => {
  assert.equal(detectGrowable(btrfs(2, 1)), { ok: false, refusal: 'a btrfs of several devices' })
})

test.run()
