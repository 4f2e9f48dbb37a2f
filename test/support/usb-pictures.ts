/** `pnpm docs:boots`: a stick as it starts a machine, from the machine's own screen, into docs/pictures. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { openIso } from './built-images.ts'
import { shrinkPng } from './png.ts'
import type { Qemu } from './qemu.ts'
import { startUsbMachine } from './usb-machine.ts'
import { makeUsbStick } from './usb-stick.ts'

const FOLDER = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const PATIENCE = 300
/** The serial line, where we wait, is a little ahead of the screen. */
const SETTLE_MS = 1500

const image = (name: string, megabytes: number) => ({
  name,
  content: Buffer.alloc(megabytes * 2 ** 20, name),
})

await using stick = await makeUsbStick({
  iso: await openIso(),
  gigabytes: 16,
  isGrown: true,
  files: [
    image('debian-13-generic-amd64.img', 64),
    image('lab-node-2026-11.img', 24),
    image('memory-test.img', 2),
  ],
})
await using machine = await startUsbMachine({ firmware: 'bios', medium: { stick: stick.path } })
await machine.waitFor(/plain graphics, all messages/, PATIENCE)
await shoot(machine, 'usb-menu')
await machine.waitFor(/memory-test\.img/, PATIENCE)
await sleep(10 * SETTLE_MS)
await shoot(machine, 'usb-wizard')

async function shoot({ monitor, folder }: Qemu, name: string) {
  await sleep(SETTLE_MS)
  const filename = join(folder, `${name}.png`)
  await monitor.execute('screendump', { filename, format: 'png' })
  const small = shrinkPng(await readFile(filename))
  await writeFile(join(FOLDER, `${name}.png`), small)
  console.log(`docs/pictures/${name}.png ${small.length} bytes`)
}
