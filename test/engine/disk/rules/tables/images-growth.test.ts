/** The plan of growing the images partition, and that it can be cut short anywhere. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { sumBootRegion } from '#appliance/images-volume.ts'
import { sumTo, planVolumeGrowth, planTableGrowth } from '#engine/disk/rules/tables/exfat-growth.ts'
import { planNextWrites, readTable, readVolume, growWhole } from '#test/support/disk/growing.ts'
import { makeStick } from '#test/support/vm/stick.ts'

const test = suite('images growth')
const MIB = 2 ** 20
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
