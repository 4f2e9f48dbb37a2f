/** Partitions as the first bytes of a disk list them, compared with what sfdisk made. */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sumBootRegion } from '#appliance/images-volume.ts'
import { planTableGrowth, planVolumeGrowth, sumTo } from '#engine/disk/rules/images-partition.ts'
import { parsePartitions } from '#engine/disk/rules/partition-tables.ts'
import { growWhole, planNextWrites, readTable, readVolume } from '#test/support/disk/growing.ts'
import { makeStick } from '#test/support/vm/stick.ts'

const test = suite('partitions')
const MIB = 2 ** 20

/** The first MiB of a disk with this table. */
function makeTable(script: string): Buffer {
  const path = join(tmpdir(), `flasher-table-${process.pid}-${crypto.randomUUID()}`)
  try {
    writeFileSync(path, '')
    truncateSync(path, 64 * MIB)
    execFileSync('sfdisk', ['--quiet', path], { input: script })
    return readFileSync(path).subarray(0, MIB)
  } finally {
    rmSync(path)
  }
}

test('a GPT: names, types, identities and places, also behind a gap in the numbers', () => {
  const head = makeTable(`label: gpt
1 : start=2048, size=2048, type=U, name="EFI-SYSTEM"
4 : start=8192, size=4096, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, uuid=6F0C5A3E-52D4-4B1C-9D58-3A7E0B9F4C21, name="root"
`)
  const parsed = parsePartitions(head, 512)
  assert.ok(parsed.ok)
  assert.is(parsed.value.length, 2)
  assert.is(parsed.value[0]?.type, 'c12a7328-f81f-11d2-ba4b-00a0c93ec93b')
  assert.is(parsed.value[0]?.name, 'EFI-SYSTEM')
  assert.equal(parsed.value[1], {
    number: 4,
    name: 'root',
    uuid: '6f0c5a3e-52d4-4b1c-9d58-3a7e0b9f4c21',
    type: '4f68bce3-e8cd-4db1-96e7-fbcaf984b709',
    offset: 4 * MIB,
    bytes: 2 * MIB,
  })
})

test('an MBR: its four primary partitions', () => {
  const head = makeTable(`label: dos
label-id: 0xdeadbeef
start=63, size=100, type=c
start=2048, size=2048, type=83
`)
  assert.equal(parsePartitions(head, 512), {
    ok: true,
    value: [
      { number: 1, name: '', uuid: 'deadbeef-01', type: '0x0c', offset: 63 * 512, bytes: 51_200 },
      { number: 2, name: '', uuid: 'deadbeef-02', type: '0x83', offset: MIB, bytes: MIB },
    ],
  })
})

test('no table, and a damaged one', () => {
  assert.equal(parsePartitions(Buffer.alloc(MIB), 512), { ok: false, refusal: 'no-table' })
  assert.equal(parsePartitions(Buffer.alloc(100), 512), { ok: false, refusal: 'no-table' })
  const head = makeTable('label: gpt\nsize=1M\n')
  head.writeUInt8(1, 2 * 512 + 8)
  assert.equal(parsePartitions(head, 512), { ok: false, refusal: 'damaged-table' })
})

const GIB = 2 ** 30
const NAME = 'FLASHER_IMAGES'
const files = [{ name: 'one.img', content: Buffer.alloc(300_000, 1) }]

test('a stick grows to its end, and is then left alone', () => {
  const { disk } = makeStick({ diskBytes: 4 * GIB, files })
  const grown = growWhole(disk)
  assert.equal(
    grown.map(({ what }) => what),
    [
      'backup entries',
      'backup header',
      'entries',
      'header',
      'length of the bitmap',
      'backup boot sector',
      'boot sector',
    ],
  )
  assert.equal(planNextWrites(disk), [])
  const table = planTableGrowth(readTable(disk), NAME)
  assert.ok(table.ok)
  assert.is(table.value.partition.lastSector, 4 * 2 ** 21 - 2048 - 1)
})

test('what changes in the volume is three sectors', () => {
  const { disk } = makeStick({ diskBytes: 4 * GIB, files })
  const inVolume = growWhole(disk).slice(4)
  assert.equal(
    inVolume.map(({ bytes }) => bytes.length),
    [512, 512, 512],
  )
})

test('any disk: what was planned is done, and nothing is left', () => {
  const megabytes = fc.oneof(
    fc.integer({ min: 37, max: 4096 }),
    fc.integer({ min: 37, max: 2 ** 21 }),
  )
  fc.assert(
    fc.property(megabytes, fc.nat(2047), (size, more) => {
      const { disk } = makeStick({ diskBytes: size * MIB + more * 512, files: [] })
      growWhole(disk)
      assert.equal(planNextWrites(disk), [])
    }),
    { numRuns: 60 },
  )
})

test('beyond 512 GiB the partition grows, the volume stays at its limit', () => {
  const { disk, volumeOffset } = makeStick({ diskBytes: 1024 * GIB, files })
  growWhole(disk)
  const boot = disk.read(volumeOffset, 512)
  assert.is(boot.readUInt32LE(92), 2_097_152)
  assert.is(boot.readBigUInt64LE(72), BigInt(18_944 + 2_097_152 * 512))
  assert.equal(planNextWrites(disk), [])
})

test('a stick that is copied to a larger one grows again, to a smaller one is left as it is', () => {
  const { disk, volumeOffset } = makeStick({ diskBytes: 4 * GIB, files })
  growWhole(disk)
  const larger = makeStick({ diskBytes: 8 * GIB, files }).disk
  for (let at = 0; at < 64 * MIB; at += MIB) larger.write(at, disk.read(at, MIB))
  assert.is(growWhole(larger).length, 7)
  assert.equal(planNextWrites(larger), [])
  const refused = planTableGrowth({ ...readTable(disk), diskBytes: 2 * GIB }, NAME)
  assert.equal(refused, { ok: false, refusal: 'disk-too-small' })
  const volume = planVolumeGrowth({ ...readVolume(disk, volumeOffset), sectors: 1_000_000 })
  assert.equal(volume, { ok: false, refusal: 'partition-too-small' })
})

test('what is not ours is left alone', () => {
  const { disk, volumeOffset } = makeStick({ diskBytes: GIB, files })
  assert.equal(planTableGrowth(readTable(disk), 'OTHER'), { ok: false, refusal: 'no-partition' })
  assert.equal(planTableGrowth(readTable(disk), 'FLASHER_EFI'), { ok: false, refusal: 'not-last' })
  const facts = { ...readVolume(disk, volumeOffset), sectors: 2_000_000 }
  const notOurs = { ok: false, refusal: 'not-ours' }
  assert.equal(planVolumeGrowth({ ...facts, boot: Buffer.alloc(facts.boot.length) }), notOurs)
  assert.equal(planVolumeGrowth({ ...facts, boot: facts.boot.subarray(0, 100) }), notOurs)
  assert.equal(planVolumeGrowth({ ...facts, root: Buffer.alloc(512) }), notOurs)
  disk.write(512, Buffer.alloc(512))
  assert.equal(planTableGrowth(readTable(disk), NAME), { ok: false, refusal: 'no-table' })
})

test('noise in place of a table or a volume is refused, never a crash', () => {
  const noise = fc.uint8Array({ minLength: 0, maxLength: 600 })
  fc.assert(
    fc.property(noise, fc.nat(20_000), (bytes, at) => {
      const { disk, volumeOffset } = makeStick({ diskBytes: GIB, files })
      const table = readTable(disk)
      table.head.set(bytes.subarray(0, Math.max(0, table.head.length - at)), at)
      planTableGrowth(table, NAME)
      const volume = readVolume(disk, volumeOffset)
      const start = Math.min(at, volume.boot.length)
      volume.boot.set(bytes.subarray(0, volume.boot.length - start), start)
      volume.root.set(bytes.subarray(0, 512))
      planVolumeGrowth({ ...volume, sectors: 2_000_000 })
    }),
  )
})

test('the boot region keeps its checksum, whatever it says', () => {
  const { disk, volumeOffset } = makeStick({ diskBytes: GIB, files: [] })
  const region = disk.read(volumeOffset, 12 * 512)
  const check = (length: number, clusters: number, sum: number) => {
    const changed = Buffer.from(region)
    changed.writeBigUInt64LE(BigInt(length), 72)
    changed.writeUInt32LE(clusters, 92)
    const kept = sumTo(changed, sum)
    assert.is(sumBootRegion(kept), sum)
    // Nothing but the end of the boot code was used for it.
    assert.ok(kept.subarray(0, 460).equals(changed.subarray(0, 460)))
    assert.ok(kept.subarray(510).equals(changed.subarray(510)))
  }
  fc.assert(fc.property(fc.nat(2 ** 31), fc.nat(2_097_152), fc.nat(0xffffffff), check))
  // Sums of few bits are reached only by an addition that overflows.
  for (const sum of [0, 1913, 1914, 2999, 0xffffffff]) check(0, 0, sum)
  for (let bit = 0; bit < 32; bit += 1) check(0, 0, 2 ** bit)
})

test.run()
