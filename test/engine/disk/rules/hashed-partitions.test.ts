/** Partitions under dm-verity: by their types, by hashes in a partition of their own, and by hashes behind a file system. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  detectGrowable,
  listHashed,
  locateEnd,
  readBtrfsNumber,
  type SeenPartition,
  SIGNATURE_BYTES,
} from '#engine/disk/rules/file-systems.ts'

const test = suite('dm-verity')
const MIB = 2 ** 20
const LINUX = '0fc63daf-8483-4772-8e79-3d69d8477de4'

/** An ext4 of so many blocks of 4096 bytes. */
function ext4(blocks: number) {
  const first = Buffer.alloc(4096)
  first.writeUInt16LE(0xef53, 1080)
  first.writeUInt32LE(blocks, 1028)
  first.writeUInt32LE(2, 1048)
  return first
}

/** The superblock of hashes of so many blocks of 4096 bytes. */
function hashes(blocks: number) {
  const first = Buffer.alloc(4096)
  first.write('verity')
  first.writeUInt32LE(4096, 64)
  first.writeBigUInt64LE(BigInt(blocks), 72)
  return first
}

const part = (
  number: number,
  first: Buffer,
  { type = LINUX, behind = null as Buffer | null } = {},
): SeenPartition => ({
  number,
  name: '',
  uuid: '',
  type,
  offset: number * 64 * MIB,
  bytes: 16 * MIB,
  first,
  behind,
})

const numbersOf = (...partitions: readonly SeenPartition[]) =>
  listHashed(partitions).map(({ number }) => number)

test('hashes in a partition of their own', () => {
  const [root, hash] = [
    '4f68bce3-e8cd-4db1-96e7-fbcaf984b709',
    '2c7357ed-ebd2-46d9-aec1-23d437ec2bf5',
  ]
  assert.equal(
    numbersOf(part(1, ext4(4096), { type: root }), part(2, Buffer.alloc(0), { type: hash })),
    [1],
  )
  assert.equal(numbersOf(part(1, ext4(4000)), part(2, hashes(4096)), part(3, ext4(4096))), [1, 3])
  assert.equal(numbersOf(part(1, ext4(4096)), part(2, hashes(16384))), [])
})

test('hashes of /usr are of nothing else', () => {
  const usr = [
    ['8484680c-9521-48c6-9c11-b0720656f69e', '77ff5f63-e7b6-4633-acf4-1565b864c0e6'],
    ['b0e01050-ee5f-4390-949a-9101b17104e9', '6e11a4e7-fbca-4ded-b9e9-e1a512bb664e'],
  ] as const
  for (const [data, type] of usr) {
    const hashed = part(2, hashes(4096), { type })
    assert.equal(numbersOf(part(1, ext4(4096)), hashed, part(3, ext4(4096), { type: data })), [3])
  }
})

test('hashes behind the file system', () => {
  assert.equal(numbersOf(part(1, ext4(1024), { behind: hashes(1024) }), part(2, ext4(1024))), [1])
  assert.equal(numbersOf(part(1, ext4(1024), { behind: Buffer.alloc(4096) })), [])
})

test('where a file system ends', () => {
  const xfs = Buffer.alloc(4096)
  xfs.write('XFSB')
  xfs.writeUInt32BE(4096, 4)
  xfs.writeBigUInt64BE(100n, 8)
  assert.equal([ext4(1000), xfs, Buffer.alloc(4096)].map(locateEnd), [4096_000, 409_600, null])
})

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
