/** `pnpm docs:boots`: a stick as it starts a machine, from the machine's own screen, into docs/pictures. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openIso } from './built-images.ts'
import { shoot } from './screendump.ts'
import { startUsbMachine } from './usb-machine.ts'
import { makeUsbStick } from './usb-stick.ts'

const PATIENCE = 300
/** The pause for menus that are drawn after what we wait for. */
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
    image('debian-13-generic-amd64.img.zst', 48),
    image('debian-13-generic-arm64.img.zst', 46),
    image('firmware-update-2026-09.img', 12),
    image('lab-node-2026-10.qcow2', 38),
    image('lab-node-2026-11.qcow2', 39),
    image('memory-test.img', 2),
    image('rescue-x86_64.img.xz', 21),
    image('router-x86_64.img.gz', 9),
  ],
})
await using machine = await startUsbMachine({ firmware: 'bios', medium: { stick: stick.path } })
await machine.waitFor(/plain graphics, all messages/, PATIENCE)
await shoot(machine, 'usb-menu')
await machine.waitFor(/router-x86_64\.img/, PATIENCE)
await sleep(10 * SETTLE_MS)
await shoot(machine, 'usb-wizard')
