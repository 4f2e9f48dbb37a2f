/** The ISO on a stick starts a PC by its BIOS, up to the wizard: its images partition grown, an image offered. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle, openIso } from '#test/support/vm/built-images.ts'
import { makeUsbStick } from '#test/support/vm/usb-stick.ts'
import { startUsbMachine } from '#test/support/vm/usb-machine.ts'

const test = suite('ISO')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240
const GIB = 2 ** 30

run(
  'a stick of 4 GiB under a BIOS: the images partition grows, and its image is offered',
  async () => {
    const files = [{ name: 'tiny.img', content: Buffer.alloc(2 ** 20, 7) }]
    await using stick = await makeUsbStick({ iso: await openIso(), gigabytes: 4, files })
    await using machine = await startUsbMachine({
      firmware: 'bios',
      medium: { stick: stick.path },
      megabytes: 512,
    })
    await machine.waitFor(/flasher: the system is on \/dev\/sda1/, PATIENCE)
    await machine.waitFor(/images: \/dev\/sda3 has grown from 23\.9 MB to 4\.1\d GB/, PATIENCE)
    await machine.waitFor(/Images in: \/var\/lib\/flasher\/images/, PATIENCE)
    await machine.waitFor(/tiny\.img/, PATIENCE)
    const { room, said } = await stick.check()
    assert.ok(room > 3.7 * GIB, String(room))
    assert.match(said, 'clean. directories 1, files 1')
  },
)

test.run()
