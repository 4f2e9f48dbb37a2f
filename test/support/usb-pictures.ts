/** `pnpm docs:boots`: a stick as it starts a machine, from the machine's own screen, into docs/pictures. */
import { setTimeout as sleep } from 'node:timers/promises'
import { openIso } from './built-images.ts'
import { shoot } from './screendump.ts'
import { startUsbMachine } from './usb-machine.ts'
import { makeUsbStick } from './usb-stick.ts'

const PATIENCE = 300
/** For menus that are drawn after what we wait for. */
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
