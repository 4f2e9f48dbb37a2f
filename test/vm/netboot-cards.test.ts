/** A machine with two network cards finds its server, also when the wrong one has an address, too. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findBuildObstacle, openTrio } from '#test/support/vm/built-images.ts'
import { NETBOOT_MAC, startNetboot } from '#test/support/vm/netboot.ts'

const test = suite('netboot with two cards')
const obstacle = findBuildObstacle()
if (obstacle !== null) console.log(`skipped: ${obstacle}`)
const run = obstacle === null ? test : test.skip

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240
const HANDED_OVER = /handing over to the live system/
const OTHER_MAC = '52:54:00:00:00:01'
/** Its network has DHCP and leads nowhere. */
const cardBefore = [
  ['-netdev', 'user,id=lab,net=10.0.3.0/24,restrict=on'],
  ['-device', `virtio-net-pci,netdev=lab,mac=${OTHER_MAC}`],
].flat()
const busyFor = (times: number) => (transfer: number) =>
  transfer < times ? { status: 503 } : undefined

run('the card that the machine booted by is asked for as long as it has an address', async () => {
  const options = { cardBefore, trouble: busyFor(5) }
  await using boot = await startNetboot(await openTrio(), options)
  const said = await boot.machine.waitFor(HANDED_OVER, PATIENCE)
  assert.match(said, '503')
  assert.match(said, /attempt 6 of \d+/)
  assert.not.match(said, `(${OTHER_MAC})`)
})

run('nobody knows the card: each is asked in turn, and the first again', async () => {
  const options = { cardBefore, isAlone: true, trouble: busyFor(2) }
  await using boot = await startNetboot(await openTrio(), options)
  const said = await boot.machine.waitFor(HANDED_OVER, PATIENCE)
  const asked = [...said.matchAll(/asking for an address on \w+ \((.*?)\)/g)].map(([, mac]) => mac)
  assert.equal(asked.slice(0, 4), [OTHER_MAC, NETBOOT_MAC, OTHER_MAC, NETBOOT_MAC])
})

test.run()
