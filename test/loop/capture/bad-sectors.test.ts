/** Bad sectors of a disk that is captured: those that nobody wants end nothing, and the one that ends it is named. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDiskReader } from '#engine/capture/part-reading.ts'
import { listRanges } from '#engine/capture/rules/range-list.ts'
import { createSlot, openDevice } from '#engine/disk/device.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { createFaultyDisk, scripted } from '#test/support/disk/faulty-disk.ts'

const test = suite('captured bad sectors')
const MIB = 1 << 20
const SECTOR = 512
/** Within the first 4096 bytes behind one range, and 64 KiB before the next one. */
const BAD = 2 * MIB + 3 * SECTOR

const FAIL = `if [ "$4" -le ${BAD} ] && [ $(($4 + $3)) -gt ${BAD} ]; then echo EIO bad >&2; exit 1; fi`

async function fill(ranges: readonly Range[]) {
  await using disk = await createFaultyDisk({ nbdkit: scripted(4, { pread: FAIL }) })
  const facts = { node: disk.device, sizeBytes: 4 * MIB, sectorBytes: SECTOR }
  await using writing = await openDevice(facts)
  const content = createSlot(4 * MIB).fill(0x55)
  await writing.write(content, 0)
  const reader = createDiskReader(writing, listRanges(ranges), [])
  const into = createSlot(4 * MIB)
  await reader.fill(into)
  return into
}

test('one between two ranges that are read in one go ends nothing', async () => {
  const ranges = [
    { offset: MIB, bytes: MIB + SECTOR },
    { offset: BAD + 64 * 1024, bytes: MIB },
  ]
  const into = await fill(ranges)
  for (const { offset, bytes } of ranges) {
    assert.ok(into.subarray(offset, offset + bytes).every((byte) => byte === 0x55))
  }
  assert.is(into[BAD], 0)
})

test('one that is wanted is named', async () => {
  const fault = await fill([{ offset: MIB, bytes: 2 * MIB }]).then(
    () => null,
    (thrown: unknown) => thrown,
  )
  assert.match(String(fault), `read error at byte ${BAD} (EIO)`)
})

test.run()
