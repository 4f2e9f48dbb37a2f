/** A machine with a BMC, booted into the live system: it reads the address of its BMC and reports it. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startOwnBmc } from '#test/support/power/own-bmc.ts'
import { LAB_MAC } from '#test/support/server/lab.ts'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { startPxeLab, waitFor } from '#test/support/vm/pxe-flash.ts'

const ADDRESS = '10.20.0.11'

const test = suite('the BMC of a machine')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

run('its address is read through /dev/ipmi0, and nothing is done with it', async () => {
  await using pxe = await startPxeLab()
  const { lab } = pxe
  const folder = join(lab.folder, 'bmc')
  await mkdir(folder)
  await using bmc = await startOwnBmc(lab.namespace, folder, ADDRESS)
  await lab.ask(`/machines/${LAB_MAC}`, { boot_mode: 'flasher-tui' }, 'PUT')
  await using _ = await pxe.start('bios-rom', { args: bmc.args })
  await waitFor(pxe, async () => ((await pxe.readMachine()).bmc_address ?? null) !== null)
  assert.is((await pxe.readMachine()).bmc_address, ADDRESS)
  const power = lab.ask(`/machines/${LAB_MAC}/power`)
  assert.match(await power.then(String, String), 'no way to the power')
})

test.run()
