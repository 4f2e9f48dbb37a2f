/** The server appliance for arm64 does what that for PCs does, under Secure Boot; and a Raspberry Pi finds in it what it looks for. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPiVolume, PI_BOARDS, readPiStart } from '../../support/boot/pi-boot.ts'
import { findBuildObstacle } from '../../support/vm/built-images.ts'
import { writeServerDisk } from '../../support/vm/server-appliance.ts'
import { updateAndRollBack } from '../../support/vm/server/update.ts'

const test = suite('server appliance for arm64')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const folder = await mkdtemp(join(tmpdir(), 'flasher-server-'))
test.after(() => rm(folder, { recursive: true }))
const FIRMWARE_OFFSET = 4 * 2 ** 20

run('a Raspberry Pi 4 and a 5 find U-Boot and device trees', async () => {
  const volume = openPiVolume(await writeServerDisk(folder, 'arm64'), FIRMWARE_OFFSET)
  for (const name of Object.values(PI_BOARDS).flat()) {
    assert.is(volume.read(`/${name}`).readUInt32BE(0), 0xd00dfeed, name)
  }
  assert.is(volume.read('/start4.elf').toString('latin1', 1, 4), 'ELF')
  for (const name of ['pi4', 'pi5'] as const) {
    const { settings, kernel } = readPiStart(volume, name)
    assert.is(settings.get('arm_64bit'), '1')
    assert.ok(kernel.includes('U-Boot 20'), 'no U-Boot')
    // The names by which it knows the processors and their card readers.
    for (const known of ['brcm,bcm2711-emmc2', 'brcm,bcm2712-sdhci', 'BOOTAA64.EFI']) {
      assert.ok(kernel.includes(known), known)
    }
  }
})

run('a fresh disk boots by UEFI, is updated and rolled back, and keeps its state', () =>
  updateAndRollBack({ arch: 'arm64', firmware: 'arm64-secure', folder }),
)

test.run()
