/** The netboot trio, started as iPXE would start it, up to the wizard. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle, openTrio } from '#test/support/vm/built-images.ts'
import { NETBOOT_MAC, startNetboot } from '#test/support/vm/netboot.ts'

const test = suite('netboot')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240

run('384 MiB are enough, from the kernel to the wizard', async () => {
  await using boot = await startNetboot(await openTrio(), { megabytes: 384, isAlone: true })
  const said = await boot.machine.waitFor(/handing over to the live system/, PATIENCE)
  assert.match(said, `asking for an address on eth0 (${NETBOOT_MAC})`)
  assert.match(said, /flasher: fetching http:\/\/10\.0\.2\.2:\d+\/boot\/flasher-netboot-pc-x86_64/)
  assert.match(said, 'flasher: digest verified')
  await boot.machine.waitFor(/Images in: /, PATIENCE)
})

test.run()
