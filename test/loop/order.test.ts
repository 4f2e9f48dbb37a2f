import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, inMemory, type DiskRequest } from '#test/support/disk/faulty-disk.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { assertSame, expectedDisk, flash, makeStale, readDisk } from '#test/support/disk/writer.ts'

const test = suite('the order of writes')
const MIB = 1 << 20
const DISK_MIB = 12
const DISK_BYTES = DISK_MIB * MIB

/** Where a request goes: the first 4 KiB, the first MiB without them, the body, the last MiB. */
function placeOf({ offset, bytes }: DiskRequest): string {
  const end = offset + bytes
  if (end <= 4096) return 'first'
  if (offset >= 4096 && end <= MIB) return 'rest'
  if (offset >= DISK_BYTES - MIB) return 'tail'
  return offset >= MIB && end <= DISK_BYTES - MIB ? 'body' : `astride ${offset}`
}

/** The places written to before each flush, in no order: the kernel may cut and reorder them. */
function summarize(requests: readonly DiskRequest[]): readonly string[] {
  const groups: Set<string>[] = [new Set()]
  for (const request of requests) {
    if (request.kind === 'Flush') groups.push(new Set())
    else if (request.kind !== 'Read') groups.at(-1)?.add(placeOf(request))
  }
  const places = groups.map((group) => [...group].toSorted().join(' '))
  // The kernel may flush once more; nothing may come behind the last flush.
  return places.filter((place, n) => place !== '' || n === places.length - 1)
}

/** What shows a disk that is smaller than it says stands at its end before the image; nothing boots from it. */
const IN_ORDER = ['tail', 'body', 'tail', 'rest', 'first', '']

for (const sectorBytes of [512, 4096] as const) {
  for (const verify of ['none', 'data', 'all'] as const) {
    test(`on a disk of ${sectorBytes}-byte sectors, verify ${verify}: the ends come last`, async () => {
      const nbdkit = inMemory(DISK_MIB)
      await using disk = await createFaultyDisk({ nbdkit, log: true, sectorBytes })
      const { device } = disk
      const stale = await makeStale(device, sectorBytes)
      const image = makeDiskImage(DISK_BYTES - 512 * 7, { sectorBytes })
      const source = createMemorySource(image, { name: 'disk.img' })
      disk.takeRequests()
      await flash({ source, device, verify })
      const [cleared, ...written] = summarize(disk.takeRequests())
      assert.match(cleared ?? '', /^first rest tail$/)
      assert.equal(written, IN_ORDER)
      assertSame(await readDisk(device), expectedDisk(stale, image, sectorBytes))
    })
  }
}

// An old RAID or ZFS is found by what it left there.
test('an image that ends before the last MiB has zeros written there with the ends', async () => {
  await using disk = await createFaultyDisk({ nbdkit: inMemory(DISK_MIB), log: true })
  const { device } = disk
  const stale = await makeStale(device)
  const image = makeDiskImage(5 * MIB + 1000)
  disk.takeRequests()
  await flash({ source: createMemorySource(image, { name: 'disk.img' }), device })
  const [cleared, ...written] = summarize(disk.takeRequests())
  assert.match(cleared ?? '', /^first rest tail$/)
  assert.equal(written, IN_ORDER)
  assertSame(await readDisk(device), expectedDisk(stale, image))
})
test.run()
