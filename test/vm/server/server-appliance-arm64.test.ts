/** The server appliance for arm64 does what that for PCs does, under Secure Boot; and a Raspberry Pi finds in it what it looks for. */
import { execFileSync } from 'node:child_process'
import { glob, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { NAMED_APPLIANCES } from '#appliance/all.ts'
import { SERVER_BOOT } from '#appliance/server.ts'
import { cacheFolder, CHECKOUT, readVersion } from '#build/facts.ts'
import { planImages } from '#build/plan.ts'
import { runSteps } from '#build/run.ts'
import { renderGrubEnvironment } from '#build/server/grub.ts'
import { openPiVolume, PI_BOARDS, readPiStart } from '#test/support/boot/pi-boot.ts'
import { opened } from '#test/support/opened.ts'
import { findBuildObstacle, openServer } from '#test/support/vm/built-images.ts'
import { type Qemu, startQemu } from '#test/support/vm/qemu.ts'
import { writeServerDisk } from '#test/support/vm/server-appliance.ts'
import { updateAndRollBack } from '#test/support/vm/server/update.ts'

/** Where the first partition begins. */
const FIRMWARE_OFFSET: number = 4 * 2 ** 20

/** Its size must be a power of two. What the board's firmware would do, QEMU does: it starts U-Boot with a device tree. */
async function startPi(disk: string): Promise<Qemu> {
  await using undo = new AsyncDisposableStack()
  const folder = undo.use(await mkdtempDisposable(join(tmpdir(), 'flasher-pi-')))
  const loader = join(folder.path, 'u-boot.bin')
  await writeFile(loader, openPiVolume(disk, FIRMWARE_OFFSET).read('/u-boot.bin'))
  const boot = ['-kernel', loader, '-dtb', await findDeviceTree()]
  const card = ['-drive', `if=sd,format=raw,file=${disk}`]
  const qemu = undo.use(
    await startQemu({ processor: 'pi3', megabytes: 1024, cores: 4, args: [...boot, ...card] }),
  )
  const held = undo.move()
  return { ...qemu, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

/** That of a 3 is on no image: it comes from the packages that the appliance is built of. */
async function findDeviceTree(): Promise<string> {
  const facts = { version: readVersion(CHECKOUT), epoch: 1, level: 'dev' } as const
  const appliances = NAMED_APPLIANCES.filter(({ name }) => name === 'server-rpi')
  const { steps } = planImages({ appliances, facts, ipxeServer: null, ipxeSource: null })
  const outcome = await runSteps({
    steps: steps.filter(({ name }) => ['mkosi', 'tools', 'arm64-server-base'].includes(name)),
    checkout: CHECKOUT,
    cache: cacheFolder(process.env),
    say: () => {},
  })
  if (!outcome.ok) throw new Error(`the step ${outcome.step} failed`)
  const modules = join(outcome.pathOf('@arm64-server-base/base'), 'usr/lib/modules')
  for await (const path of glob(join(modules, '*/dtb/broadcom/bcm2837-rpi-3-b.dtb'))) return path
  throw new Error(`${modules} has no device tree of a Raspberry Pi 3`)
}

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
