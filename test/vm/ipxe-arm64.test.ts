/** UEFI on arm64, TFTP by the documented recipe, our iPXE: the machine gets the live system of its processor. */
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { ARCHS } from '#appliance/appliance.ts'
import { makeBootFolder, partName } from '#test/support/server/boot-folder.ts'
import { findBuildObstacle, openIpxe } from '#test/support/vm/built-images.ts'
import { LAB_MAC, LAB_SERVER, startLab } from '#test/support/server/lab.ts'

const test = suite('iPXE on arm64')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const MachineSchema = z.object({ boot_mode: z.string() })

run('a new machine is discovered, and asks for the kernel of arm64', async () => {
  await using release = await makeBootFolder()
  for (const arch of ARCHS) await release.putTrio('1.2.3', arch)
  const boot = (await release.names()).map((name) => join(release.dir, name))
  await using lab = await startLab({ boot, ipxe: await openIpxe() })
  await using machine = await lab.start('arm64-pxe')
  await machine.waitFor(/flasher: iPXE .* on arm64 efi/, PATIENCE)
  await machine.waitFor(new RegExp(`${LAB_SERVER}/pxe-bootstrap\\.ipxe`), PATIENCE)
  await machine.waitFor(/starts the live system \(disks-wanted\)/, PATIENCE)
  await machine.waitFor(new RegExp(`${partName('1.2.3', 'vmlinuz', 'arm64')}.*ok`), PATIENCE)
  const { boot_mode } = MachineSchema.parse(await lab.ask(`/machines/${LAB_MAC}`))
  assert.is(boot_mode, 'flasher-inventory')
})

test.run()
