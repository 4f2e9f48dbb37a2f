/** One call over Redfish: a machine that is off boots over HTTP from an address that only its BMC told it, is flashed, and its first boot is proved. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findImageObstacle } from '#test/support/disk/debian-image.ts'
import { renderFirmwareVariables } from '#test/support/power/firmware-variables.ts'
import { callFlash, introduce, ONE_CALL, packImage } from '#test/support/power/one-call.ts'
import { powerMachine } from '#test/support/power/powered-machine.ts'
import { startRedfish } from '#test/support/power/redfish-fake.ts'
import { LAB_SERVER } from '#test/support/server/lab.ts'
import { findBuildObstacle, openIpxe } from '#test/support/vm/built-images.ts'
import { openCloudImage } from '#test/support/vm/cloud-image.ts'
import { openMachine, startBootLab } from '#test/support/vm/pxe-flash.ts'

const test = suite('one call over Redfish')
const obstacle = findBuildObstacle() ?? findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const HTTP_BOOT = `${LAB_SERVER}/boot/ipxe.efi`

run('off, one call, Redfish, HTTP Boot without DHCP, flashed, booted', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-one-call-'))
  const image = await packImage(await openCloudImage(), join(folder.path, 'cloud.img.zst'))
  const ipxe = await openIpxe()
  await using lab = await startBootLab({ ipxe, images: [image], env: ONE_CALL, hasPlainDhcp: true })
  await using bmc = await startRedfish(null, await lab.namespace.listenWithin())
  // As real ones are: it says so before it is so.
  Object.assign(bmc.lies, { lagMs: 2000, earlyReadings: 1, lostBoots: 1, wantsEtag: true })
  const pxe = await openMachine(lab, basename(image))
  await introduce(lab, { way: 'redfish', address: bmc.address, http_boot: HTTP_BOOT }, [
    basename(image),
  ])

  /** The boot device counts for one boot, and the disk comes first in all others. */
  const start = async () => {
    const { BootSourceOverrideTarget: target, HttpBootUri: uri } = bmc.state.boot
    const url = target === 'UefiHttp' ? String(uri) : null
    bmc.state.boot = { ...bmc.state.boot, BootSourceOverrideTarget: 'None' }
    const variables = join(lab.folder, 'variables')
    await writeFile(variables, await renderFirmwareVariables(url))
    return pxe.start('uefi-http', { isDiskFirst: true, variables })
  }
  await using machine = powerMachine({ isOn: () => bmc.state.isOn, start })
  const call = callFlash(lab, '--power', '--image', basename(image))
  const proved = await Promise.race([machine.broken, call])
  assert.equal([proved.code, proved.outcome, proved.proof?.how], [0, 'booted', 'call'], lab.said())
  assert.is(proved.proof?.contacts, 0)
  assert.is(machine.boots(), 2)
  assert.is(bmc.sessions(), 0)
})

test.run()
