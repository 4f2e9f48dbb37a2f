/** A real iPXE and a server without the live system's files: how long it tries, and what it does then. */
import { unlink } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { DISK_SAYS, makeTalkingDisk } from '#test/support/vm/ipxe.ts'
import { MAC, REF } from '#test/support/server/machine-fixture.ts'
import { startStation } from '#test/support/vm/station.ts'

const test = suite('iPXE and its patience')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const PATIENCE = 240
const FLASH = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }

run('what was never written to boots its disk after 31 seconds of trying', async () => {
  await using station = await startStation()
  await station.put(FLASH)
  await unlink(station.kernelPath)
  const disk = await makeTalkingDisk(station.dir)
  await using machine = await station.boot({ firmware: 'bios', disk })
  const said = await machine.waitFor(new RegExp(DISK_SAYS), PATIENCE)
  const pauses = [...said.matchAll(/next try in (\d+) s\n/g)].map(([, seconds]) => seconds)
  assert.equal(pauses, ['1', '2', '4', '8', '16'])
})

run('what may be half written waits for the server, and asks again', async () => {
  await using station = await startStation()
  await station.put(FLASH)
  const plan = await station.request(`/pxe/${MAC}/plan`)
  assert.match(await plan.text(), '"mode":"flash"')
  await unlink(station.kernelPath)
  const disk = await makeTalkingDisk(station.dir)
  await using machine = await station.boot({ firmware: 'bios', disk })
  await machine.waitFor(/waits: the disk may be half written/, PATIENCE)
  await station.restoreKernel()
  const said = await machine.waitFor(/Command line: /, PATIENCE)
  assert.not.match(said, DISK_SAYS)
  const scripts = station.requests.filter((line) => line.startsWith('GET /pxe/52-54'))
  assert.is(scripts.length, 2)
})

test.run()
