/** The ISO starts a PC in every way there is, and the wizard flashes a disk that then starts by itself. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtempDisposableSync, openSync, closeSync, ftruncateSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bootToLogin } from '#test/support/vm/boot.ts'
import { findBuildObstacle, openIso } from '#test/support/vm/built-images.ts'
import { openDebianImage } from '#test/support/disk/debian-image.ts'
import type { Qemu } from '#test/support/vm/qemu.ts'
import { startUsbMachine, type Firmware } from '#test/support/vm/usb-machine.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'

const test = suite('ISO everywhere')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 300
const FLASHING = 900
const CURSOR_DOWN = '\u001B[B'
/** What a kernel says that was started with Secure Boot enforced, and no other one. */
const SECURE_BOOT = [
  'Kernel is locked down from EFI Secure Boot',
  'secureboot: Secure boot enabled',
  'Lockdown: swapper/0: hibernation is restricted',
]
const tiny = { name: 'tiny.img', content: Buffer.alloc(2 ** 20, 7) }

/** The wizard begins with the images that lie beside it, where there are any. */
async function lookForImages(machine: Qemu) {
  await machine.waitFor(/Images in: \/var\/lib\/flasher\/images/, PATIENCE)
}

for (const firmware of ['uefi', 'secure'] as const satisfies readonly Firmware[]) {
  run(`a stick, ${firmware}: grown, and its image offered`, async () => {
    await using stick = await makeUsbStick({ iso: await openIso(), gigabytes: 2, files: [tiny] })
    await using machine = await startUsbMachine({ firmware, medium: { stick: stick.path } })
    const kernel = await machine.waitFor(/flasher: boot system/, PATIENCE)
    // Any of the lines that tell it: one or two may be lost while the kernel opens its console.
    const isLocked = SECURE_BOOT.some((line) => kernel.includes(line))
    if (isLocked !== (firmware === 'secure')) throw new Error(`see ${machine.keepLog()}`)
    await machine.waitFor(/images: \/dev\/sda3 has grown/, PATIENCE)
    await lookForImages(machine)
    await machine.waitFor(/tiny\.img/, PATIENCE)
    assert.match((await stick.check()).said, 'clean. directories 1, files 1')
  })
}

for (const firmware of ['bios', 'uefi'] as const) {
  run(`a disc, ${firmware}: up to the wizard`, async () => {
    await using machine = await startUsbMachine({ firmware, medium: { disc: await openIso() } })
    await machine.waitFor(/flasher: the system is on \/dev\/sr0/, PATIENCE)
    // The wizard begins with the choice of a catalog, because there is no image.
    await machine.waitFor(/Images in: \/var\/lib\/flasher\/images/, PATIENCE)
    await machine.waitFor(/Catalog: /, PATIENCE)
  })
}

run('copied to memory, the system goes on when the stick is pulled out', async () => {
  await using stick = await makeUsbStick({ iso: await openIso(), gigabytes: 1, files: [tiny] })
  await using machine = await startUsbMachine({ firmware: 'uefi', medium: { stick: stick.path } })
  await machine.waitFor(/Flasher, copied to memory/, PATIENCE)
  machine.send(`${CURSOR_DOWN}\r`)
  await machine.waitFor(/flasher: the system is in memory/, PATIENCE)
  await lookForImages(machine)
  await machine.waitFor(/tiny\.img/, PATIENCE)
  await machine.monitor.execute('device_del', { id: 'stick' })
  machine.send('b\r')
  await machine.waitFor(/Where do the images come from/, PATIENCE)
})

run('320 MiB of memory are enough', async () => {
  await using stick = await makeUsbStick({ iso: await openIso(), gigabytes: 1, files: [tiny] })
  await using machine = await startUsbMachine({
    firmware: 'bios',
    medium: { stick: stick.path },
    megabytes: 320,
  })
  await lookForImages(machine)
  await machine.waitFor(/tiny\.img/, PATIENCE)
})

run('the second start of a grown stick writes nothing', async () => {
  await using stick = await makeUsbStick({
    iso: await openIso(),
    gigabytes: 2,
    files: [tiny],
    isGrown: true,
  })
  const before = execFileSync('sha256sum', [stick.path], { encoding: 'utf8' })
  {
    await using machine = await startUsbMachine({ firmware: 'bios', medium: { stick: stick.path } })
    const said = await machine.waitFor(/images: those on \/dev\/sda3 are offered/, PATIENCE)
    assert.not.match(said, /has grown/)
    await lookForImages(machine)
    await machine.waitFor(/tiny\.img/, PATIENCE)
  }
  assert.is(execFileSync('sha256sum', [stick.path], { encoding: 'utf8' }), before)
})

run(
  'a Debian image from the stick onto an NVMe disk by the keys of the serial line; the disk starts',
  async () => {
    const image = readFileSync(await (await openDebianImage()).file('img.zst'))
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-nvme-'))
    const disk = join(folder.path, 'disk')
    const handle = openSync(disk, 'w')
    ftruncateSync(handle, 2 ** 30)
    closeSync(handle)
    await using stick = await makeUsbStick({
      iso: await openIso(),
      gigabytes: 1,
      files: [{ name: 'debian.img.zst', content: image }],
      isGrown: true,
    })
    {
      await using machine = await startUsbMachine({
        firmware: 'uefi',
        medium: { stick: stick.path },
        megabytes: 320,
        disk,
      })
      await lookForImages(machine)
      await machine.waitFor(/debian\.img\.zst/, PATIENCE)
      machine.send('1\r')
      // The stick, from which this system runs, is on the list too, and cannot be chosen.
      const listed = await machine.waitFor(/\d {2}\/dev\/nvme0n1/, PATIENCE)
      machine.send(`${/\d(?= {2}\/dev\/nvme0n1$)/.exec(listed)?.[0]}\r`)
      await machine.waitFor(/Everything on \/dev\/nvme0n1 will be lost/, PATIENCE)
      await machine.waitFor(/ERASE AND FLASH/, PATIENCE)
      machine.send('y')
      const said = await machine.waitFor(/Done\.|The flash failed\.|Cancelled\./, FLASHING)
      if (!said.endsWith('Done.')) throw new Error(`see ${machine.keepLog()}`)
      await machine.waitFor(/verified/, PATIENCE)
      machine.send('r\r')
      // What the root lies on stays mounted to the end, and that is not reported as a failure.
      const last = await machine.waitFor(/reboot: Restarting system/, PATIENCE)
      assert.not.match(last, 'FAILED')
    }
    assert.match(
      await bootToLogin(disk, { firmware: 'uefi', bus: 'nvme' }),
      /flasher-test login: $/,
    )
  },
)

test.run()
