/** One boot into the wizard that a server ordered: the machine reports the address of its BMC, and a phone reads the code on its screen. */
import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startOwnBmc } from '../../support/power/own-bmc.ts'
import { LAB_MAC, LAB_SERVER } from '../../support/server/lab.ts'
import { findBuildObstacle } from '../../support/vm/built-images.ts'
import { PATIENCE, startPxeLab } from '../../support/vm/pxe-flash.ts'
import type { Qemu } from '../../support/vm/qemu.ts'

const test = suite('the BMC of a machine, and the code on its screen')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** What a phone reads from the screen; empty: nothing. */
async function readCode({ monitor, folder }: Qemu): Promise<string> {
  const filename = join(folder, 'screen.png')
  await monitor.execute('screendump', { filename, format: 'png' })
  const argv = ['--quiet', '--raw', filename]
  const read = await promisify(execFile)('zbarimg', argv).catch(() => ({ stdout: '' }))
  return read.stdout.trim()
}

run('both in one boot', async () => {
  await using pxe = await startPxeLab()
  const { lab } = pxe
  const folder = join(lab.folder, 'bmc')
  await mkdir(folder)
  await using bmc = await startOwnBmc(lab.namespace, folder, '10.20.0.11')
  await lab.ask(`/machines/${LAB_MAC}`, { boot_mode: 'flasher-tui' }, 'PUT')
  await using machine = await pxe.start('bios-rom', { hasScreen: true, args: bmc.args })
  const until = performance.now() + 1000 * PATIENCE
  const seen = { address: '', code: '' }
  while ((seen.address === '' || seen.code === '') && performance.now() < until) {
    await sleep(2000)
    seen.address = (await pxe.readMachine()).bmc_address ?? ''
    seen.code ||= await readCode(machine)
  }
  const page = `${LAB_SERVER}/m/${LAB_MAC.replaceAll(':', '')}`.toUpperCase()
  assert.equal(seen, { address: '10.20.0.11', code: page })
})

test.run()
