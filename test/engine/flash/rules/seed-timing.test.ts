/** When a seed can be written before the ends, and which sectors are held back for that. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planEarlySeed } from '#engine/flash/rules/provisioning.ts'
import {
  MAX_LOGICAL,
  numberLogical,
  parseLogicalTable,
} from '#engine/flash/rules/last-partition.ts'
import { makeDiskImage, writeGpt } from '#test/support/disk/disk-images.ts'

const MIB = 2 ** 20
const SIZE = 8 * MIB

interface Entry {
  readonly type: number
  readonly first: number
  readonly sectors: number
}

/** A sector with a table of an MBR. */
function dosSector(...entries: readonly Entry[]): Buffer {
  const sector = Buffer.alloc(512)
  sector.writeUInt16LE(0xaa55, 510)
  for (const [at, { type, first, sectors }] of entries.entries()) {
    sector.writeUInt8(type, 446 + at * 16 + 4)
    sector.writeUInt32LE(first, 446 + at * 16 + 8)
    sector.writeUInt32LE(sectors, 446 + at * 16 + 12)
  }
  return sector
}

const dosHead = (...entries: readonly Entry[]) =>
  Buffer.concat([dosSector(...entries), Buffer.alloc(MIB - 512, 0x5a)])
const disk = { sizeBytes: SIZE, sectorBytes: 512 }
const none = { tail: Buffer.alloc(0), moved: null }
const placesOf = (pieces: readonly { readonly offset: number; readonly bytes: Buffer }[]) =>
  pieces.map(({ offset, bytes }) => [offset, bytes.length])

const timing = suite('planEarlySeed')

timing('holds both ends back whole where nothing reaches into them', () => {
  const head = dosHead({ type: 0x83, first: 2048, sectors: 4096 })
  const planned = planEarlySeed(disk, { head, ...none })
  assert.equal(placesOf(planned?.early ?? []), [])
  assert.equal(placesOf(planned?.held ?? []), [
    [7 * MIB, MIB],
    [4096, MIB - 4096],
    [0, 4096],
  ])
  assert.equal(
    planned?.partitions.map(({ number, offset, bytes }) => [number, offset, bytes]),
    [[1, MIB, 2 * MIB]],
  )
})

timing('holds back what lies before the first partition, and the backup table', () => {
  const head = dosHead({ type: 0x83, first: 63, sectors: SIZE / 512 - 63 })
  const planned = planEarlySeed(disk, { head, tail: Buffer.alloc(MIB, 1), moved: null })
  assert.equal(placesOf(planned?.early ?? []), [
    [7 * MIB, MIB],
    [63 * 512, MIB - 63 * 512],
  ])
  assert.equal(placesOf(planned?.held ?? []), [
    [4096, 63 * 512 - 4096],
    [0, 4096],
  ])
  const image = makeDiskImage(SIZE)
  writeGpt(image, 512, 3)
  const ends = { head: image.subarray(0, MIB), tail: image.subarray(7 * MIB), moved: null }
  const gpt = planEarlySeed(disk, ends)
  const held = [...(gpt?.held ?? [])].map(({ offset, bytes }) => offset + bytes.length)
  assert.ok(held.includes(SIZE), 'the backup table is held back')
})

timing('leaves to the time after the ends what is no table, or lies in it', () => {
  const heads = [
    Buffer.alloc(MIB),
    dosHead(),
    dosHead({ type: 0xee, first: 1, sectors: 100 }),
    dosHead({ type: 0x83, first: 4, sectors: 4096 }),
    dosHead({ type: 0x83, first: 2048, sectors: SIZE / 512 }),
    dosHead({ type: 0x83, first: 2048, sectors: 2048 }, { type: 0x83, first: 1, sectors: 2 }),
  ]
  // A GPT that no MBR protects: the kernel reads the MBR.
  const stale = makeDiskImage(SIZE)
  writeGpt(stale, 512, 3)
  dosSector({ type: 0x83, first: 2048, sectors: 2048 }).copy(stale)
  for (const head of [...heads, stale.subarray(0, MIB)]) {
    assert.is(planEarlySeed(disk, { head, ...none }), null)
  }
})

timing.run()

const logical = suite('parseLogicalTable')
const extended = { offset: 2 * MIB, bytes: 4 * MIB }

logical('reads a partition and where the next table lies, as the kernel does', () => {
  const sector = dosSector(
    { type: 0x83, first: 2048, sectors: 1024 },
    { type: 0x05, first: 4096, sectors: 1024 },
  )
  const { partition, next } = parseLogicalTable(sector, 2 * MIB, { extended, sectorBytes: 512 })
  assert.equal([partition?.offset, partition?.bytes, partition?.type], [3 * MIB, MIB / 2, '0x83'])
  assert.is(next, 4 * MIB)
  const [named] = numberLogical(partition === null ? [] : [partition], '00c0ffee')
  assert.equal([named?.number, named?.uuid], [5, '00c0ffee-05'])
})

logical('leads nowhere outside the extended partition', () => {
  const rows = [
    Buffer.alloc(512),
    dosSector({ type: 0x83, first: 1, sectors: 100_000 }, { type: 0x05, first: 9000, sectors: 1 }),
  ]
  for (const sector of rows) {
    const found = parseLogicalTable(sector, 2 * MIB, { extended, sectorBytes: 512 })
    assert.equal(found, { partition: null, next: null })
  }
  assert.ok(MAX_LOGICAL < 1000)
})

logical.run()
