import { execFileSync } from 'node:child_process'
import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  moveBackup,
  parseBackupBytes,
  parseTableSector,
} from '#engine/disk/rules/partition-tables.ts'
import { damaged } from '#test/support/disk/compressed.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'

const test = suite('gpt')
const MIB = 1 << 20
const IMAGES = { 512: makeDiskImage(MIB), 4096: makeDiskImage(MIB, { sectorBytes: 4096 }) }
const sector = fc.constantFrom(512 as const, 4096 as const)

test('tells the sector size that a table was made for', () => {
  assert.is(parseTableSector(IMAGES[512]), 512)
  assert.is(parseTableSector(IMAGES[4096]), 4096)
  for (const none of [Buffer.alloc(0), Buffer.alloc(MIB), makeNoise(8192)]) {
    assert.is(parseTableSector(none), null)
  }
})

test('tells how much of a disk holds a backup table', () => {
  assert.is(parseBackupBytes(IMAGES[512]), 512 + 16_384)
  assert.is(parseBackupBytes(IMAGES[4096]), 4096 + 16_384)
  // However little of the end is seen, and also of a disk that is no longer than its table.
  assert.is(parseBackupBytes(IMAGES[512].subarray(-512)), 512 + 16_384)
  assert.is(parseBackupBytes(Buffer.alloc(512)), 0)
  assert.is(parseBackupBytes(Buffer.alloc(0)), 0)
})

test('the moved table is one that sgdisk approves of', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-gpt-'))
  const path = join(folder.path, 'disk')
  for (const diskBytes of [MIB, MIB + 512, 2 * MIB + 512 * 33, 64 * MIB]) {
    const moved = moveBackup(IMAGES[512], diskBytes, 512)
    if (!moved.ok) throw new Error(moved.refusal)
    const disk = Buffer.alloc(diskBytes)
    IMAGES[512].copy(disk)
    moved.value.head.copy(disk)
    moved.value.backup.copy(disk, moved.value.offset)
    assert.is(moved.value.offset + moved.value.backup.length, diskBytes)
    writeFileSync(path, disk)
    const words = execFileSync('sgdisk', ['--verify', path], { encoding: 'utf8', stdio: 'pipe' })
    assert.match(words, 'No problems found', String(diskBytes))
  }
})

test('on a disk of the very size, nothing changes', () => {
  for (const sectorBytes of [512, 4096] as const) {
    const moved = moveBackup(IMAGES[sectorBytes], MIB, sectorBytes)
    assert.ok(moved.ok && moved.value.head.equals(IMAGES[sectorBytes]))
    assert.ok(
      moved.ok && moved.value.backup.equals(IMAGES[sectorBytes].subarray(moved.value.offset)),
    )
  }
})

const refusal = (head: Buffer, diskBytes: number, sectorBytes = 512) => {
  const moved = moveBackup(head, diskBytes, sectorBytes)
  return moved.ok ? null : moved.refusal
}
test('refuses what it cannot move', () => {
  assert.is(refusal(Buffer.alloc(MIB), 2 * MIB), 'no-gpt')
  assert.is(refusal(IMAGES[512], 2 * MIB, 4096), 'no-gpt')
  assert.is(refusal(IMAGES[512], MIB - 512), 'disk-too-small')
  assert.is(refusal(IMAGES[512], 20 * 512), 'disk-too-small')
  assert.is(refusal(IMAGES[512].subarray(0, 8192), 2 * MIB), 'damaged-gpt')
  assert.is(refusal(IMAGES[512].subarray(0, 520), 2 * MIB), 'damaged-gpt')
})

test('damage anywhere in a table is found, and never thrown about', () => {
  for (const sectorBytes of [512, 4096] as const) {
    const table = IMAGES[sectorBytes].subarray(0, 2 * sectorBytes + 16_384)
    fc.assert(
      fc.property(damaged(table.subarray(sectorBytes)), fc.nat(4 * MIB), (tables, more) => {
        const head = Buffer.concat([table.subarray(0, sectorBytes), tables])
        const diskBytes = MIB + more - (more % sectorBytes)
        const moved = moveBackup(head, diskBytes, sectorBytes)
        const isSame = tables.subarray(0, 92).equals(table.subarray(sectorBytes, sectorBytes + 92))
        assert.ok(!moved.ok || isSame)
      }),
      { numRuns: 500 },
    )
  }
})

test('any bytes at all are answered', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 9000 }),
      sector,
      fc.boolean(),
      (bytes, size, isMarked) => {
        const head = Buffer.from(bytes)
        if (isMarked) head.write('EFI PART', Math.min(size, head.length), 'latin1')
        parseTableSector(head)
        assert.ok(parseBackupBytes(head) >= 0)
        assert.not(moveBackup(head, MIB, size).ok)
      },
    ),
  )
})
test.run()
