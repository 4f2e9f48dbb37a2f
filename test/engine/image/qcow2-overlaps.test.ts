/** qcow2 images whose clusters or tables lie in their own tables are refused. */
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { faultOf } from '#test/support/collect.ts'
import { CONTENT, openBytes, readFault } from '#test/support/disk/qcow2-faults.ts'
import { openWorkshop } from '#test/support/disk/qcow2-image.ts'

/** Where QEMU put the tables of an image. */
function placesOf(image: Buffer) {
  const l1 = Number(image.readBigUInt64BE(40))
  const refcounts = Number(image.readBigUInt64BE(48))
  return {
    l1,
    refcounts,
    l2: Number(image.readBigUInt64BE(l1) & 0xffffffffffffffn),
    block: Number(image.readBigUInt64BE(refcounts)),
  }
}

const COPIED = 1n << 63n
const PACKED = 1n << 62n

const test = suite('qcow2 overlaps')

test("a cluster that lies in the image's own tables is refused", async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(CONTENT))
  const { l1, l2, refcounts, block } = placesOf(image)
  const rows: readonly (readonly [what: string, entry: bigint])[] = [
    ['the L1 table', COPIED | BigInt(l1)],
    ['the L2 table itself', COPIED | BigInt(l2)],
    ['the refcount table', COPIED | BigInt(refcounts)],
    ['a refcount block', COPIED | BigInt(block)],
    ['compressed, the header', PACKED | 104n],
    ['compressed, the L2 table itself', PACKED | BigInt(l2 + 700)],
    ['compressed, a refcount block', PACKED | BigInt(block + 65_000)],
  ]
  for (const [what, entry] of rows) {
    const broken = Buffer.from(image)
    broken.writeBigUInt64BE(entry, l2 + 5 * 8)
    for (const isFar of [false, true]) {
      const fault = await readFault(broken, isFar)
      assert.is(fault.code, 'image-broken', what)
      assert.match(fault.message, /guest byte 327680 points into the image's own tables/, what)
    }
  }
})
test("tables that lie in the image's other tables are known at once", async () => {
  await using shop = await openWorkshop()
  const image = await readFile(await shop.convert(CONTENT))
  const { l1, refcounts, block } = placesOf(image)
  const inTables = /guest byte 0 points into the image's own tables/
  const inCounts = /its reference counts lie in its other tables/
  const rows: readonly (readonly [at: number, value: bigint, words: RegExp])[] = [
    [l1, BigInt(refcounts), inTables],
    [l1, BigInt(block), inTables],
    [refcounts, BigInt(l1), inCounts],
    [refcounts, BigInt(refcounts), inCounts],
    [48, BigInt(l1), /the refcount table lies in the L1 table/],
  ]
  for (const [at, value, words] of rows) {
    const broken = Buffer.from(image)
    broken.writeBigUInt64BE(value, at)
    const fault = await faultOf(() => openBytes(broken))
    assert.match(fault.message, words)
  }
})

test.run()
