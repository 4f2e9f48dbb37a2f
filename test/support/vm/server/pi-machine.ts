/** A Raspberry Pi 3 with the server appliance on its card: QEMU has no 4 or 5, and U-Boot starts all of them alike. */
import { mkdtempDisposable, glob, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NAMED_APPLIANCES } from '#appliance/all.ts'
import { CHECKOUT, cacheFolder, readVersion } from '#build/facts.ts'
import { planImages } from '#build/plan.ts'
import { runSteps } from '#build/run.ts'
import { openPiVolume } from '#test/support/boot/pi-boot.ts'
import { startQemu, type Qemu } from '../qemu.ts'

/** Where the first partition begins. */
export const FIRMWARE_OFFSET: number = 4 * 2 ** 20

/** Its size must be a power of two. What the board's firmware would do, QEMU does: it starts U-Boot with a device tree. */
export async function startPi(disk: string): Promise<Qemu> {
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
