/** UEFI, TFTP, our iPXE, the live system, the server's plan, the cache's image: an empty machine becomes a Debian. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { DISK_SERIAL, LAB_MAC } from '#test/support/server/lab.ts'
import { LAB_ADDRESS } from '#test/support/http/namespace.ts'
import {
  discover,
  flash,
  PATIENCE,
  startPxeLab,
  waitFor,
  type PxeLab,
} from '#test/support/vm/pxe-flash.ts'

const test = suite('PXE')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run('UEFI PXE: discovered, bound, flashed through the cache, booted', async () => {
  await using pxe = await startPxeLab()
  await discover(pxe, 'uefi-pxe')
  const { boot_mode, known_disks } = await pxe.readMachine()
  assert.is(boot_mode, 'flasher-inventory')
  assert.equal(known_disks, [{ serial: DISK_SERIAL, size: '1G' }])

  await pxe.bind()
  await flash(pxe, 'uefi-pxe')
  const [last] = await pxe.readRuns()
  assert.is(last?.result, 'done')
  assert.is(last?.verified, true)
  assert.is(last?.disk?.serial, DISK_SERIAL)
  assert.match(last?.image?.src ?? '', `http://${LAB_ADDRESS}:8081/`)
  await waitFor(pxe, async () => (await pxe.readMachine()).last_flashed_at !== null)
  assert.is((await readLeases(pxe)).length, 1, 'one address from the firmware to the wizard')

  await using machine = await pxe.start('uefi-pxe')
  await machine.waitFor(/boots its own disk/, PATIENCE)
  await machine.waitFor(/flasher-test login: /, PATIENCE)
})

/** The addresses that the machine has been given. */
async function readLeases({ lab }: PxeLab): Promise<readonly string[]> {
  const leases = await readFile(join(lab.folder, 'leases'), 'utf8')
  return leases.split('\n').filter((line) => line.includes(LAB_MAC))
}

test.run()
