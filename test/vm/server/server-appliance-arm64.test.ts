/** The server appliance for arm64 does what that for PCs does, under Secure Boot; and a Raspberry Pi finds in it what it looks for. */
import { execFileSync } from 'node:child_process'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPiVolume, PI_BOARDS, readPiStart } from '#test/support/boot/pi-boot.ts'
import { SERVER_BOOT } from '#appliance/server.ts'
import { renderGrubEnvironment } from '#build/server/grub.ts'
import { opened } from '#test/support/opened.ts'
import { findBuildObstacle, openServer } from '#test/support/vm/built-images.ts'
import { writeServerDisk } from '#test/support/vm/server-appliance.ts'
import { FIRMWARE_OFFSET, startPi } from '#test/support/vm/server/pi-machine.ts'
import { updateAndRollBack } from '#test/support/vm/server/update.ts'

const test = suite('server appliance for arm64')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 900
const folder = opened(test, () => mkdtempDisposable(join(tmpdir(), 'flasher-server-')))

run('a Raspberry Pi 4 and a 5 find U-Boot and device trees', async () => {
  const volume = openPiVolume(await writeServerDisk(folder().path, 'arm64'), FIRMWARE_OFFSET)
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

run(
  'U-Boot starts GRUB from the card of a Raspberry Pi, which gives up a version after its attempts',
  async () => {
    const disk = await writeServerDisk(folder().path, 'arm64')
    const { version } = await openServer('arm64')
    const used = renderGrubEnvironment({ good: version, next: '99.0.0', tries: '0' })
    const place = ['-i', `${disk}@@${FIRMWARE_OFFSET}`, '-', `::${SERVER_BOOT.environment}`]
    execFileSync('mcopy', ['-o', ...place], { input: used })
    await using machine = await startPi(disk)
    // U-Boot's own first lines come before its console.
    await machine.waitFor(/Booting bootflow .* with efi_mgr/, PATIENCE)
    await machine.waitFor(/Booting `Flasher server/, PATIENCE)
    // The kernel found its console by itself.
    await machine.waitFor(
      new RegExp(`${version.replaceAll('.', '\\.')} is in /dev/mmcblk0p2`),
      PATIENCE,
    )
    await machine.waitFor(/the state partition has [23]\d{3} MiB/, PATIENCE)
    const kept = openPiVolume(disk, FIRMWARE_OFFSET).read(`/${SERVER_BOOT.environment}`).toString()
    assert.match(kept, /^failed=99\.0\.0$/m)
    assert.not.match(kept, /^next=9/m)
  },
)

run('a fresh disk boots by UEFI, is updated and rolled back, and keeps its state', () =>
  updateAndRollBack({ arch: 'arm64', firmware: 'arm64-secure', folder: folder().path }),
)

test.run()
