/** `pnpm demo --auto` to its end: from nothing to a virtual machine that proves that it booted what was flashed. */
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SECTOR, VOLUME } from '#build/demo/boot-sector.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { layLiveSystem, startDemo } from '#test/support/vm/demo.ts'

const GREETING = 'This disk was written by flasher.'

const test = suite('demo')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run(
  '--auto discovers, arms, flashes and boots its machine, whose new system calls, and ends with code 0',
  async () => {
    await layLiveSystem()
    await using demo = await startDemo('--auto')
    assert.is(await demo.ended(), 0, demo.said())
    const steps = demo.lines.filter(({ seconds }) => seconds !== undefined)
    console.log(steps.map(({ event, seconds }) => `${event} ${seconds} s`).join(', '))
    // The machine may have gone to its empty disk before it was armed.
    const always = steps.map(({ event }) => event).filter((name) => name !== 'restarted')
    assert.equal(
      always.filter((name, at) => name !== 'to-disk' || always[at + 1] === 'booted'),
      [
        'discovered',
        'disks',
        'armed',
        'flashing',
        'flashed',
        'to-disk',
        'booted',
        'proved',
        'ended',
      ],
    )
    const flashed = demo.lines.find(({ event }) => event === 'flashed')
    assert.is(JSON.parse(JSON.stringify(flashed)).run.isVerified, true)

    const serial = await readFile(join(demo.folder, 'serial.log'), 'latin1')
    const [, after = ''] = serial.split(/ boots its own disk \(flashed\)/)
    assert.match(after, GREETING)
    const image = await readFile(join(demo.folder, 'state/cache/hello-flasher.img'))
    await using disk = await open(join(demo.folder, 'disk.img'))
    const { buffer } = await disk.read(Buffer.alloc(image.byteLength), 0, image.byteLength, 0)
    // The configuration of the first boot was written into its volume.
    const { firstSector, sectors } = VOLUME
    const volume = [firstSector * SECTOR, (firstSector + sectors) * SECTOR] as const
    for (const bytes of [image, buffer]) bytes.fill(0, ...volume)
    assert.ok(buffer.equals(image), 'the disk holds the image')
    assert.equal(await demo.processes(), [])
  },
)

test.run()
