/** What of a partition's identity is known, and where an image cannot be generalized. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideRoom, warnOfIdentity } from '#engine/capture/rules/capture.ts'
import { decideGeneralizing, parseListing } from '#engine/capture/rules/identity.ts'
import { decideReading, SUPERBLOCK_BYTES } from '#engine/capture/rules/used-blocks.ts'

const test = suite('identity of a captured system')
const MIB = 1 << 20

test('only what is known to hold no system needs no generalizing', () => {
  assert.is(decideGeneralizing('vfat', 'it was not unmounted cleanly'), null)
  assert.is(decideGeneralizing('swap', null), null)
  assert.is(decideGeneralizing('ext4', null), null)
  assert.match(decideGeneralizing(null, null) ?? '', 'unknown contents')
  assert.is(decideGeneralizing('ext4', 'its map is wrong'), 'its map is wrong')
  assert.is(decideGeneralizing('swap', 'a table lies there'), 'a table lies there')
})

test('a file system beside a partition table is read whole, unless the two are one boot sector', () => {
  const first = Buffer.alloc(SUPERBLOCK_BYTES)
  first.writeUInt16LE(1, 1024 + 0x3a)
  // 1 MiB of ext4, of FAT and NTFS, of exFAT.
  first.writeUInt32LE(1024, 1024 + 4)
  first.writeUInt16LE(512, 0x0b)
  first.writeUInt16LE(2048, 0x13)
  first.writeUInt16LE(2047, 0x28)
  first.writeUInt8(255, 72)
  first.writeUInt8(12, 108)
  const byOf = (type: string, table: string | null) => {
    const contents = { type, table }
    return decideReading({ contents, role: 'data', first, bytes: MIB, others: [] }).by
  }
  assert.is(byOf('ext4', null), 'map')
  assert.is(byOf('ext4', 'dos'), 'whole')
  assert.is(byOf('swap', 'dos'), 'whole')
  for (const type of ['vfat', 'exfat', 'ntfs']) assert.is(byOf(type, 'dos'), 'map')
  // An entry with a length is a partition to every kernel, unless it begins where the boot sector does.
  first.writeUInt16LE(0xaa55, 510)
  first.writeUInt32LE(2048, 446 + 8)
  first.writeUInt32LE(2048, 446 + 12)
  for (const type of ['vfat', 'exfat', 'ntfs']) assert.is(byOf(type, null), 'whole')
})

test('a listing that failed is not one without files', () => {
  const place = { folder: '/etc', names: /^machine-id$/ }
  const listed = '/12/040755/0/0/.//\n/2/040755/0/0/..//\n/13/100444/0/0/machine-id/33/\n'
  const listing = (stdout: string, stderr: string, exitCode = 0) =>
    parseListing({ stdout, stderr, exitCode }, place)
  assert.equal(listing(listed, 'debugfs 1.47.0'), [{ inode: 13, path: '/etc/machine-id' }])
  assert.equal(listing('\n', 'debugfs 1.47.0\n/etc: File not found by ext2_lookup \n'), [])
  assert.is(listing('', 'debugfs 1.47.0\n/etc: Corrupt group descriptor: bad block\n'), null)
  assert.is(listing('', 'ls: Filesystem not open\n'), null)
  assert.is(listing(listed, '', 1), null)
})

test('an ext4 that was not looked into is warned of', () => {
  const part = { number: 1, bytes: MIB, usedBytes: MIB, whole: null }
  const warn = (files: readonly { inode: number; path: string }[] | null) =>
    warnOfIdentity(
      [
        { ...part, type: 'ext4', files },
        { ...part, type: 'swap', files: null },
      ],
      false,
    )
  assert.match(warn(null) ?? '', 'may hold the identity')
  assert.is(warn([]), null)
  assert.match(warn([{ inode: 13, path: '/etc/machine-id' }]) ?? '', 'identity: /etc/machine-id')
})

test('only used blocks of file systems show that an image cannot fit', () => {
  const mapped = { usedBytes: 80 * MIB, whole: null }
  const whole = { usedBytes: 1000 * MIB, whole: 'an LVM physical volume' }
  assert.is(decideRoom([mapped], 80 * MIB, 80 * MIB), 'enough')
  assert.is(decideRoom([mapped], 80 * MIB, 20 * MIB), 'doubtful')
  assert.is(decideRoom([mapped], 80 * MIB, 19 * MIB), 'too-little')
  assert.is(decideRoom([mapped, whole], 1080 * MIB, 20 * MIB), 'doubtful')
  assert.is(decideRoom([mapped, whole], 1080 * MIB, 19 * MIB), 'too-little')
  assert.is(decideRoom([whole], 1000 * MIB, 1), 'doubtful')
})
test.run()
