/** Images and disks of awkward sizes: what fits is exact, what does not stops cleanly. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { VERIFY_LEVELS } from '#engine/flash/rules/flash-plan.ts'
import { ZERO_METHODS } from '#engine/flash/rules/writing.ts'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import {
  assertBlank,
  assertSame,
  expectedDisk,
  flash,
  makeStale,
  readDisk,
} from '#test/support/disk/writer.ts'

const test = suite('sizes of images and disks')
const MIB = 1 << 20

let count = 0

/** Flashes an image of this size onto a stale disk of that one and compares every byte. */
async function check(imageBytes: number, diskBytes: number, sectorBytes: 512 | 4096) {
  await using loop = await createLoop({ sizeBytes: diskBytes, sectorBytes })
  const stale = await makeStale(loop.device, sectorBytes)
  const image = makeDiskImage(imageBytes, { sectorBytes, seed: imageBytes })
  // In turn, as zeros are found in other ways there.
  count += 1
  const name = count % 2 === 0 ? 'disk.img' : 'disk.img.zst'
  const stored = count % 2 === 0 ? image : pipeThrough(['zstd', '-qc1'], image)
  await flash({ source: createMemorySource(stored, { name }), device: loop.device })
  const label = `${name} of ${imageBytes} on ${diskBytes}`
  assertSame(await readDisk(loop.device), expectedDisk(stale, image, sectorBytes), label)
}

for (const sectorBytes of [512, 4096] as const) {
  test(`an image of exactly the disk's size, and a little less (sectors of ${sectorBytes})`, async () => {
    for (const diskBytes of [
      sectorBytes,
      64 * 1024,
      MIB - sectorBytes,
      MIB,
      MIB + sectorBytes,
      2 * MIB - sectorBytes,
      2 * MIB,
      2 * MIB + sectorBytes,
      3 * MIB,
      9 * MIB + 3 * sectorBytes,
    ]) {
      for (const less of [0, 1, sectorBytes + 1]) {
        if (diskBytes > less) await check(diskBytes - less, diskBytes, sectorBytes)
      }
    }
  })

  test(`an image that ends at the borders between the parts (sectors of ${sectorBytes})`, async () => {
    const diskBytes = 10 * MIB + sectorBytes
    for (const border of [4096, MIB, 4 * MIB, 8 * MIB, diskBytes - MIB]) {
      for (const more of [-1, 0, 1]) {
        await check(border + more, diskBytes, sectorBytes)
      }
    }
    await check(1, diskBytes, sectorBytes)
    await check(511, diskBytes, sectorBytes)
  })
}

test('in whatever way zeros get onto the disk', async () => {
  const image = makeDiskImage(9 * MIB + 700, { seed: 3 })
  for (const zeros of ZERO_METHODS) {
    for (const verify of VERIFY_LEVELS) {
      await using loop = await createLoop({ megabytes: 11 })
      const { device } = loop
      const stale = await makeStale(device)
      const source = createMemorySource(image, { name: 'disk.img' })
      await flash({ source, device, verify, change: (plan) => ({ ...plan, zeros }) })
      assertSame(await readDisk(device), expectedDisk(stale, image), `${zeros} ${verify}`)
    }
  }
})

test('an image that turns out too large stops at the end of the disk, which is left blank', async () => {
  for (const diskMib of [1, 2, 9]) {
    for (const [tool, format] of [
      ['gzip', 'img.gz'],
      ['zstd', 'img.zst'],
    ] as const) {
      for (const more of [1, 5 * MIB]) {
        await using loop = await createLoop({ megabytes: diskMib })
        await makeStale(loop.device)
        const stored = pipeThrough([tool, '-qc1'], makeDiskImage(diskMib * MIB + more))
        const source = createMemorySource(stored, { name: `disk.${format}` })
        const fault = await faultOf(() => flash({ source, device: loop.device }))
        assert.is(fault.code, 'write-failed')
        const end = diskMib * MIB
        assert.is(
          fault.message,
          `disk.${format} is larger than ${loop.device}: the disk ends at byte ${end}`,
        )
        await assertBlank(loop.device)
      }
    }
  }
})

test('an image that is known to be too large never touches the disk', async () => {
  await using loop = await createLoop({ megabytes: 2 })
  const stale = await makeStale(loop.device)
  const source = {
    ...createMemorySource(makeDiskImage(2 * MIB + 1), { name: 'disk.img' }),
    readAt: async (into: Buffer) => into.length,
  }
  const fault = await faultOf(() => flash({ source, device: loop.device }))
  assert.is(fault.code, 'plan-refused')
  assert.is(fault.message, 'image (2097153 bytes) is larger than target (2097152 bytes)')
  assertSame(await readDisk(loop.device), stale)
})

test('an empty image never touches the disk', async () => {
  await using loop = await createLoop({ megabytes: 2 })
  const stale = await makeStale(loop.device)
  const stored = pipeThrough(['gzip', '-c'], Buffer.alloc(0))
  const source = createMemorySource(stored, { name: 'disk.img.gz' })
  const fault = await faultOf(() => flash({ source, device: loop.device }))
  assert.is(fault.code, 'plan-refused')
  assert.is(fault.message, 'disk.img.gz is empty')
  assertSame(await readDisk(loop.device), stale)
})
test.run()
