/** The earlier line as a whole: PXE, the live system, the image and its seed, and a Debian that has applied it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle } from '#test/support/vm/built-images.ts'
import { EARLIER_IMAGE, startEarlierLab } from '#test/support/vm/earlier-lab.ts'
import { PATIENCE, waitForEnd } from '#test/support/vm/pxe-flash.ts'

const test = suite('the earlier line')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

const SEED = `#cloud-config
hostname: lab-box-7
runcmd:
  - [sh, -c, 'echo "the seed of $(hostname) is applied" >/dev/console']
`
const FLASH = { image: EARLIER_IMAGE, provisioning_mode: 'cloud-init', hostname: 'lab-box-7' }

run('policy flash with cloud-init: flashed, seeded, recorded, and up', async () => {
  await using earlier = await startEarlierLab()
  await earlier.put({ ...FLASH, boot_policy: 'flash' })
  await earlier.keep('user-data', SEED)
  {
    await using machine = await earlier.start()
    await machine.waitFor(/flasher: digest verified/, PATIENCE)
    await machine.waitFor(/flash complete; rebooting/, PATIENCE)
    await waitForEnd(machine)
  }
  const flashed = await earlier.readMachine()
  assert.ok(flashed.last_flashed_at)
  assert.is(flashed.boot_policy, 'flash')
  assert.equal(await earlier.readRuns(), [{ result: 'done', verified: true }])

  await earlier.put({ ...FLASH, boot_policy: 'local' })
  await using machine = await earlier.start()
  await machine.waitFor(/boots its own disk/, PATIENCE)
  await machine.waitFor(/the seed of lab-box-7 is applied/, PATIENCE)
})

test.run()
