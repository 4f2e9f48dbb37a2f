/** The Debian image boots whatever the firmware is and wherever the disk hangs. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { bootToLogin, type BootOptions } from '#test/support/vm/boot.ts'
import { findImageObstacle, openDebianImage } from '#test/support/disk/debian-image.ts'

const MACHINES: readonly BootOptions[] = [
  { firmware: 'uefi', bus: 'nvme' },
  { firmware: 'uefi', bus: 'usb' },
  { firmware: 'bios', bus: 'sata' },
]

const test = suite('firmware')
const obstacle = findImageObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

for (const machine of MACHINES) {
  run(`${machine.firmware} from ${machine.bus} to a login prompt`, async () => {
    const image = await openDebianImage()
    assert.match(await bootToLogin(await image.file('img'), machine), /flasher-test login: $/)
  })
}

test.run()
