/** --fix-gpt on disks larger than the image, judged by another program. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { faultOf } from '#test/support/collect.ts'
import { makeContent, makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { createMemorySource } from '#test/support/disk/memory-source.ts'
import { assertSame, flash, makeStale, readDisk } from '#test/support/disk/writer.ts'

const test = suite('moving the backup GPT')
const run = $({ quiet: true, nothrow: true })
const MIB = 1 << 20
const sourceOf = (image: Buffer) => createMemorySource(image, { name: 'disk.img' })

async function judge(device: string): Promise<string> {
  const { stdout, stderr } = await run`sgdisk --verify ${device}`
  return stdout + stderr
}

for (const sectorBytes of [512, 4096] as const) {
  const image = makeDiskImage(5 * MIB, { sectorBytes })
  // The end of the second disk lies within the last MiB, that of the third is the image's own.
  for (const diskBytes of [9 * MIB + sectorBytes, 5 * MIB + 16 * sectorBytes, 5 * MIB]) {
    test(`an image of ${image.length} on ${diskBytes}, sectors of ${sectorBytes}`, async () => {
      await using loop = await createLoop({ sizeBytes: diskBytes, sectorBytes })
      const { device } = loop
      await makeStale(device, sectorBytes)
      await flash({ source: sourceOf(image), device, fixGpt: true })
      assert.match(await judge(device), 'No problems found')
      // But for the tables, the image is what was written.
      const found = await readDisk(device)
      const end = image.length - 5 * 4096
      assertSame(found.subarray(40_960, end), image.subarray(40_960, end))
      const { stdout } = await run`sgdisk --info=1 ${device}`
      assert.match(stdout, 'Linux filesystem')
    })
  }

  test(`without it the backup stays where the image has it, sectors of ${sectorBytes}`, async () => {
    await using loop = await createLoop({ megabytes: 9, sectorBytes })
    const { device } = loop
    await flash({ source: sourceOf(image), device })
    assertSame((await readDisk(device)).subarray(0, image.length), image)
    assert.not.match(await judge(device), 'No problems found')
  })
}

const damaged = makeDiskImage(5 * MIB)
damaged.writeUInt8(1, 600)
const REFUSED: readonly (readonly [string, Buffer, RegExp])[] = [
  ['none', makeContent(5 * MIB), /the image has no GPT for disks with such sectors$/],
  ['a damaged one', damaged, /the image's GPT is damaged$/],
]
for (const [what, image, words] of REFUSED) {
  test(`an image with ${what} is refused before the disk is touched`, async () => {
    await using loop = await createLoop({ megabytes: 9 })
    const { device } = loop
    const stale = await makeStale(device)
    const fault = await faultOf(() => flash({ source: sourceOf(image), device, fixGpt: true }))
    assert.is(fault.code, 'plan-refused')
    assert.match(fault.message, words)
    assert.is(fault.hint, 'Flash without --fix-gpt.')
    assertSame(await readDisk(device), stale)
  })
}
test.run()
